"""Weak supervision: runs in which few problems, or none, have a reference."""

from collections.abc import Sequence
from typing import Any

import pytest
from training_cases import apples, small_trainer, watched_trainer

from partway import EMPTY, PYTHON, trace
from partway.buffer import Rules, reference_traces, seed_buffers
from partway.errors import ConfigError
from partway.problem import Problem
from partway.sample import Request
from partway.training import SelfSamplingConfig
from partway.training.preparation import with_references
from partway.training.shared_buffers import Buffers

pytestmark = pytest.mark.filterwarnings("ignore:.*TypedStorage is deprecated:UserWarning")


@pytest.mark.parametrize("rules", [Rules(), Rules(length_limit=1), Rules.of({"spurious": "flag"})])
def test_buffers_that_are_not_made_yet_are_counted_too(rules):
    problems = [*apples(3), Problem("weak", "?", 1)]
    lazy = Buffers.of(problems, rules, PYTHON, reference_traces(problems))
    eager = Buffers(problems, seed_buffers(problems, rules))
    assert lazy.metrics() == eager.metrics()
    for buffers in (lazy, eager):
        request = Request(problems[0], EMPTY, 1)
        buffers.will_explore(problems)
        solution = problems[0].reference.text.replace("answer", "x = 1\nanswer")
        buffers.consider(request.sample(solution), trace("a = 1"), 1)
        buffers.consider(request.sample("answer = 5"), trace(solution), 1)
    assert lazy.metrics() == eager.metrics()


def test_a_larger_share_of_references_holds_those_of_a_smaller():
    problems = apples(200)
    kept = {}
    for share in (0.0, 0.0975, 0.25, 1.0):
        given = with_references(problems, share, seed=3)
        kept[share] = {problem.id for problem in given if problem.reference is not None}
        assert [(p.id, p.question, p.answer) for p in given] == [
            (p.id, p.question, p.answer) for p in problems
        ]
    assert kept[0.0] < kept[0.0975] < kept[0.25] < kept[1.0]
    assert [len(ids) for ids in kept.values()] == [0, 20, 50, 200], "the nearest whole number"
    assert {p.id for p in with_references(problems, 0.25, seed=4) if p.reference} != kept[0.25]


def test_the_seed_chooses_which_references_are_kept(tmp_path):
    kept = []
    for seed in (0, 1):
        trainer = watched_trainer(tmp_path, apples(20), reference_share=0.5, seed=seed)
        assert trainer.train_dataset == with_references(apples(20), 0.5, seed)
        kept.append([problem.reference is not None for problem in trainer.train_dataset])
    assert kept[0] != kept[1]


def test_a_run_with_few_references_says_how_many_problems_have_a_solution(tmp_path):
    trainer = small_trainer(tmp_path / "run", reference_share=0.3)
    given = sum(problem.reference is not None for problem in trainer.train_dataset)
    assert 0 < given < 10
    trainer.before_step()
    trainer.explore(trainer.batch)
    solved = sum(bool(buffer.fully_correct) for buffer in trainer.buffers.values())
    assert trainer.buffers.metrics()["buffer/problems_with_a_solution"] == solved > given


def test_problems_without_a_solution_get_more_samples_until_many_brought_nothing(tmp_path):
    settings = {"reference_share": 0.3, "effective_batch_size": 10, "num_generations": 4}
    trainer = watched_trainer(tmp_path / "run", apples(10), sample_budget="success", **settings)
    given = {problem.id: problem.reference is not None for problem in trainer.train_dataset}
    trainer.buffers.drawn.update(hopeless := [key for key in given if not given[key]][:1] * 10_000)
    trainer.before_step()
    trainer.explore(trainer.batch)
    (call,) = trainer.engine.calls
    counts = {request.problem.id: request.count for request in call.requests}
    assert sum(counts.values()) == 4 * 10
    assert counts.pop(hopeless[0]) == 1
    solved, unsolved = ({counts[key] for key in counts if given[key] is kind} for kind in (True, False))
    assert max(solved) < min(unsolved)
    assert trainer.account.line(trainer.accelerator, 1)["samples/unsolved"] == 1 + sum(
        count for key, count in counts.items() if not given[key]
    )


def test_batches_have_as_many_solved_problems_as_asked_for(tmp_path):
    settings = {"reference_share": 0.3, "eval_strategy": "no"}
    trainer = watched_trainer(tmp_path / "run", apples(10), solved_share=0.5, **settings)
    kinds = []
    learn = trainer.learn

    def watched(model: Any, problems: Sequence[Problem]) -> Any:
        kinds.append([problem.reference is not None for problem in problems])
        return learn(model, problems)

    trainer.learn = watched
    trainer.train()
    assert all(len(step) == 4 for step in kinds), "not what is left of an epoch"
    assert kinds[0] == [True, True, False, False]
    assert trainer.run.metrics()[-2]["buffer/problems_with_a_solution"] == 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reference_share": 1.5}, "reference_share is 1.5, expected a share between 0 and 1"),
        ({"solved_share": -1}, "solved_share is -1.0, expected a share between 0 and 1"),
        (
            {"solved_share": 0.5, "explore_ahead": 1, "engine": "http://one"},
            "solved_share is 0.5 but explore_ahead is 1",
        ),
        (
            {"sample_budget": "success", "explore_ahead": 1, "engine": "http://one"},
            "sample_budget is success but explore_ahead is 1",
        ),
        (
            {"sample_budget": "success", "objective": "rloo", "self_sampling": "fcs", "num_generations": 4},
            "sample_budget is success, but rloo compares the samples",
        ),
    ],
)
def test_impossible_settings_are_refused_by_name(tmp_path, settings, message):
    with pytest.raises(ConfigError, match=message):
        SelfSamplingConfig(output_dir=str(tmp_path), use_cpu=True, **settings)
