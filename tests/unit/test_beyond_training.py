"""Rules beyond the paper's in a run: what is stitched, what is doubted, and problems without references."""

import random
from collections.abc import Sequence

import pytest

from partway import EMPTY, PYTHON, SolutionBuffer, Verdict, trace
from partway.buffer import Rules, reference_traces, seed_buffers
from partway.buffer.seeding import SeededBuffers
from partway.errors import ConfigError
from partway.models.engine import Draw, Request
from partway.models.settings import SamplingSettings
from partway.problem import Problem
from partway.sampling import sample_solutions
from partway.training import SelfSamplingConfig
from partway.training.preparation import with_references
from partway.training.shared_buffers import Buffers
from training_cases import ScriptedEngine, apples, small_trainer

pytestmark = pytest.mark.filterwarnings("ignore:.*TypedStorage is deprecated:UserWarning")


class Writer(ScriptedEngine):
    """The script, for problems that were given without their reference."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.references = {problem.id: problem for problem in problems}

    def _completion(self, request: Request, rng: random.Random) -> str:
        known = self.references[request.problem.id]
        return super()._completion(Request(known, request.prefix, request.count), rng)


@pytest.mark.parametrize("equivalence", ["exact", "live"])
def test_a_run_learns_stitched_solutions_and_counts_them_apart(tmp_path, equivalence):
    trainer = small_trainer(tmp_path / "run", equivalence=equivalence, stitch=True, save_steps=8)
    trainer.train()
    line = [line for line in trainer.run.metrics() if "loss" in line][-1]
    stitched = [solution for buffer in trainer.buffers.values() for solution in buffer.stitched]
    assert stitched
    assert line["buffer/stitched_per_problem"] == len(stitched) / 10
    assert line["buffer/exact_fallbacks"] == 0
    verdicts = [sample.verdict for sample in trainer.run.samples()]
    assert verdicts.count("new_stitched") >= len(stitched)
    problem = next(p for p in trainer.train_dataset if trainer.buffers[p.id].stitched)
    kinds = [target.kind for target in trainer.targets(problem).targets]
    assert kinds.count("stitched") == len(trainer.buffers[problem.id].stitched)
    for key, buffer in trainer.run.buffers().items():
        assert buffer.to_json() == trainer.buffers[key].to_json()


def test_problems_whose_reference_does_not_tell_what_it_reads_are_counted():
    problems = [
        Problem("plain", "?", 6, "n0 = 2\nanswer = n0 * 3"),
        Problem("late", "?", 6, "n0 = 2\nf = lambda x: x * n0\nanswer = f(3)"),
        Problem("star", "?", 4, "from math import *\nanswer = sqrt(16)"),
    ]
    for rules, count in ((Rules(equivalence="live"), 2), (Rules(), None)):
        buffers = Buffers(problems, seed_buffers(problems, rules))
        assert buffers.metrics().get("buffer/exact_fallbacks") == count
        assert buffers["late"].consider(trace("m = 2\nanswer = 0")) is Verdict.NEW_PARTIALLY_CORRECT


@pytest.mark.parametrize("rules", [Rules(), Rules(length_limit=1), Rules(spurious="flag")])
def test_buffers_that_are_not_made_yet_are_counted_too(rules):
    problems = [*apples(3), Problem("weak", "?", 1)]
    lazy = Buffers(problems, SeededBuffers(problems, rules, PYTHON, reference_traces(problems)))
    eager = Buffers(problems, seed_buffers(problems, rules))
    assert lazy.metrics() == eager.metrics()
    for buffers in (lazy, eager):
        request = Request(problems[0], EMPTY, 1)
        solution = problems[0].reference.text.replace("answer", "x = 1\nanswer")
        buffers.consider(request, Draw.of(EMPTY, solution, 1, True, None, 9, 0), trace("a = 1"), 1, 0)
        buffers.consider(request, Draw.of(EMPTY, "answer = 5", 1, True, None, 9, 0), trace(solution), 1, 0)
    assert lazy.metrics() == eager.metrics()


def test_a_larger_share_of_references_holds_those_of_a_smaller():
    problems = apples(200)
    kept = {}
    for share in (0.0, 0.1, 0.25, 1.0):
        given = with_references(problems, share, seed=3)
        kept[share] = {problem.id for problem in given if problem.reference is not None}
        assert [(p.id, p.question, p.answer) for p in given] == [
            (p.id, p.question, p.answer) for p in problems
        ]
    assert kept[0.0] < kept[0.1] < kept[0.25] < kept[1.0]
    assert len(kept[1.0]) == 200
    assert 30 < len(kept[0.25]) < 70
    assert {p.id for p in with_references(problems, 0.25, seed=4) if p.reference} != kept[0.25]


def test_a_run_with_few_references_says_how_many_problems_have_a_solution(tmp_path):
    trainer = small_trainer(tmp_path / "run", reference_share=0.3, num_generations_unsolved=5)
    trainer.engine = Writer(apples(10))
    given = sum(problem.reference is not None for problem in trainer.train_dataset)
    assert 0 < given < 10
    trainer.before_step()
    trainer.explore(trainer.batch)
    solved = sum(bool(buffer.fully_correct) for buffer in trainer.buffers.values())
    assert trainer.buffers.metrics()["buffer/problems_with_a_solution"] == solved > given


def test_problems_without_a_solution_get_more_samples():
    class Counting:
        def complete(
            self, requests: Sequence[Request], settings: SamplingSettings, seed: int
        ) -> list[list[Draw]]:
            self.counts = [request.count for request in requests]
            return [[] for _ in requests]

    solved, unsolved = apples(2)
    unsolved = Problem(unsolved.id, unsolved.question, unsolved.answer)
    buffers = {p.id: SolutionBuffer.seeded(p) for p in (solved, unsolved)}
    engine = Counting()
    settings = SamplingSettings(0.8, 1.0, 0, 16)
    sample_solutions(engine, [solved, unsolved], buffers, settings, 1, 0, num_generations_unsolved=4)
    assert engine.counts == [1, 4]


def test_dropped_doubts_are_not_learned(tmp_path):
    trainer = small_trainer(tmp_path / "run", spurious="drop")
    problem = trainer.train_dataset[0]
    assert trainer.buffers[problem.id].rules == Rules(spurious="drop")
    assert len(trainer.targets(problem).targets) == 1


def test_dropped_doubts_about_stitched_solutions_are_not_learned(tmp_path):
    rules = {"spurious": "drop", "equivalence": "live", "stitch": True}
    trainer = small_trainer(tmp_path / "run", reference_share=0.0, **rules)
    problem = Problem("pens", "50 pens at 3 dollars: how much?", 150)
    buffer = SolutionBuffer.seeded(problem, Rules(**rules))
    trainer.buffers = Buffers([problem], {"pens": buffer})
    samples = [
        "a=50\nanswer=a+100",
        "x=50\ny=x*1\nanswer=9",
        "a=50\nb=3\nanswer=a*b",
        "b=3\na=50\nanswer=b*a",
    ]
    for text in samples:
        assert buffer.consider(trace(text)).is_new
    assert [target.kind for target in trainer.targets(problem).targets] == ["fully_correct"] * 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reference_share": 1.5}, "reference_share is 1.5, expected a share between 0 and 1"),
        ({"stitch": True, "self_sampling": "fcs"}, "stitch is true but self_sampling is fcs"),
        ({"num_generations_unsolved": 0}, "num_generations_unsolved is 0, expected at least 1"),
    ],
)
def test_impossible_settings_are_refused_by_name(tmp_path, settings, message):
    with pytest.raises(ConfigError, match=message):
        SelfSamplingConfig(output_dir=str(tmp_path), use_cpu=True, **settings)
