"""A language of ten lines is trained on from end to end, and its run is read again without being told."""

from collections.abc import Sequence

from languages import Expressions
from partway import Problem, Verdict
from partway.models.engine import Draw, Request
from partway.models.settings import SamplingSettings
from partway.runs import Run
from partway.solution import Solution
from partway.training import SelfSamplingConfig, SelfSamplingTrainer
from training_cases import SMALL

TOY = Expressions()
PROBLEMS = [
    Problem(f"p{a}", f"What is {a} * 3 + 1?", a * 3 + 1, TOY.parse(f"{a} * 3\n_ + 1")) for a in range(2, 6)
]


class Script:
    """Turns the factors round; every second problem ends wrong, so that only its beginning is right."""

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Draw]]:
        return [[self._draw(request)] for request in requests]

    def _draw(self, request: Request) -> Draw:
        a = int(request.problem.id[1:])
        steps = ["3 * " + str(a), "_ + 1" if a % 2 else "_ + 2"][len(request.prefix) :]
        return Draw.of(request.prefix, "".join(f"{step}\n" for step in steps), request.count, finished=True)

    def update(self, weights: object, version: int) -> None:
        """A script has no weights."""


def test_a_language_of_ones_own_trains_from_end_to_end(tmp_path):
    settings = SMALL | {"max_steps": 4, "eval_steps": 2, "save_steps": 2, "output_dir": str(tmp_path)}
    config = SelfSamplingConfig(**settings, report_to="none", programs="languages:Expressions")
    trainer = SelfSamplingTrainer("tiny", config, PROBLEMS, PROBLEMS[:2], engine=Script())
    trainer.train()
    assert trainer.buffers["p5"].fully_correct[1] == Solution(("3 * 5", "_ + 1"))
    assert trainer.buffers["p4"].partially_correct == (Solution(("3 * 4",)),)
    run = Run.at(tmp_path)
    assert isinstance(run.programs, Expressions)
    assert run.problems() == PROBLEMS
    assert run.buffers()["p5"].fully_correct == trainer.buffers["p5"].fully_correct
    assert {sample.verdict for sample in run.samples()} >= {
        Verdict.NEW_FULLY_CORRECT,
        Verdict.NEW_PARTIALLY_CORRECT,
    }
    summary = run.evaluations()[4]
    assert summary["metrics"]["pass@1"]["value"] == 0.5
