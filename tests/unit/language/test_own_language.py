"""A language of ten lines is trained on from end to end, and its run is read again without being told."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from languages import Expressions, Shelf
from training_cases import SMALL

from partway import Problem, Verdict, load_problems
from partway.errors import RunError
from partway.evaluation import EvaluationPlan
from partway.measuring.journal import evaluate_into
from partway.measuring.result_files import read_results
from partway.models.engine import Engine, SamplingSettings
from partway.problems import read_problems, write_problems
from partway.rewards import trace_credits
from partway.runs import Run
from partway.sample import Request, Sample
from partway.solution import Solution
from partway.training import SelfSamplingConfig, SelfSamplingTrainer
from partway.training.config import config_of

TOY = Expressions()
PROBLEMS = [
    Problem(f"p{a}", f"What is {a} * 3 + 1?", a * 3 + 1, TOY.parse(f"{a} * 3\n_ + 1")) for a in range(2, 6)
]


class Script(Engine):
    """Turns the factors round; every second problem ends wrong, so that only its beginning is right."""

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Sample]]:
        return [[self._draw(request)] for request in requests]

    def _draw(self, request: Request) -> Sample:
        a = int(request.problem.id[1:])
        steps = ["3 * " + str(a), "_ + 1" if a % 2 else "_ + 2"][len(request.prefix) :]
        return request.sample("".join(f"{step}\n" for step in steps), request.count)

    def update(self, weights: object, version: int) -> None:
        """A script has no weights."""


def test_a_language_of_ones_own_trains_from_end_to_end(tmp_path):
    settings = SMALL | {"max_steps": 4, "eval_steps": 2, "save_steps": 2, "output_dir": str(tmp_path)}
    config = SelfSamplingConfig(**settings, report_to="none", language="languages:Expressions")
    trainer = SelfSamplingTrainer("tiny", config, PROBLEMS, PROBLEMS[:2], engine=Script())
    trainer.train()
    assert trainer.buffers["p5"].fully_correct[1] == Solution(("3 * 5", "_ + 1"))
    assert trainer.buffers["p4"].partially_correct == (Solution(("3 * 4",)),)
    run = Run.at(tmp_path)
    assert isinstance(run.language, Expressions)
    assert run.problems() == PROBLEMS
    assert run.buffers()["p5"].fully_correct == trainer.buffers["p5"].fully_correct
    assert {sample.verdict for sample in run.samples()} >= {
        Verdict.NEW_FULLY_CORRECT,
        Verdict.NEW_PARTIALLY_CORRECT,
    }
    summary = run.evaluations()[4]
    assert summary["metrics"]["pass@1"]["value"] == 0.5


SHELF = Shelf("sum")
TAKEN = Solution(("apples", "pears", "sum"))
SHOP = [
    Problem(f"shop{plums}", "Apples and pears?", 3, TAKEN, context={"apples": 1, "pears": 2, "plums": plums})
    for plums in (2, 9)
]
PLUMS = "plums\napples\nsum\n"  # right where there are as many plums as pears


class Plums(Engine):
    """Writes the same text for every problem."""

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Sample]]:
        return [[request.sample(PLUMS, request.count)] for request in requests]

    def update(self, weights: object, version: int) -> None:
        """A script has no weights."""


def test_the_same_text_is_traced_against_the_context_of_each_problem(tmp_path):
    settings = SMALL | {"max_steps": 2, "eval_steps": 2, "save_steps": 2, "output_dir": str(tmp_path)}
    config = config_of(settings | {"report_to": "none", "language": "languages:Shelf", "last": "sum"})
    trainer = SelfSamplingTrainer("tiny", config, SHOP, SHOP, engine=Plums())
    trainer.train()
    assert [len(trainer.buffers[problem.id].fully_correct) for problem in SHOP] == [2, 1]
    run = Run.at(tmp_path)
    assert run.language == SHELF
    assert run.problems() == SHOP, "with what their programs run against"
    passed = {result.task_id: result.samples[0].passed for result in read_results(run.evaluation_file(2))[0]}
    assert passed == {"shop2": True, "shop9": False}


def test_rewards_and_files_of_problems_see_the_context(tmp_path):
    assert trace_credits([PLUMS, PLUMS], SHOP, alpha=0.5, language=SHELF) == [1.0, 0.0]
    path = tmp_path / "shop.jsonl"
    write_problems(path, SHOP)
    assert load_problems(path, language=SHELF) == SHOP
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["context"]["pears"] = 7
    del rows[1]["context"]
    reasons = [bad.reason for bad in read_problems(rows, language=SHELF).bad_rows]
    assert reasons[0] == "gives 8, but the answer is 3"
    assert "there is no shelf to take from" in reasons[1]


def test_an_evaluation_is_not_taken_up_where_the_context_is_another(tmp_path):
    plan, path = EvaluationPlan(samples=1, pass1_samples=0, language=SHELF), tmp_path / "shop.json"
    evaluate_into(path, Plums(), SHOP, plan, model="plums")
    with pytest.raises(RunError, match="another evaluation's results"):
        evaluate_into(path, Plums(), [replace(SHOP[0], context={"plums": 9}), SHOP[1]], plan, model="plums")
