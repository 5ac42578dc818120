"""A run's recorded samples and evaluations in place of new ones (`--replay`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from transformers import PreTrainedModel

from partway.errors import RunError
from partway.evaluation import ProblemResult
from partway.measuring.result_files import read_results
from partway.models.engine import Engine, Request, SamplingSettings, Wrapped
from partway.problem import Problem
from partway.runs import Run
from partway.sample import Sample


class Recorded(Wrapped):
    """The samples of a run in place of those of an engine, step by step.

    What servers draw cannot be drawn again, but what became of it can: the same samples, considered in the
    same steps, give the same buffers and, on a CPU, the same weights to the last bit.
    """

    def __init__(self, engine: Engine, run: Run) -> None:
        super().__init__(engine)
        self.run = run
        # Read as training goes, with one step in memory: a run may have millions of samples.
        self._steps: Iterator[tuple[int, list[Sample]]] = (
            (step, list(rows)) for step, rows in groupby(run.samples(), key=lambda sample: sample.step)
        )
        self._step = self._wanted = 0
        self._rows: dict[str, list[Sample]] = {}

    def update(self, weights: PreTrainedModel, version: int) -> None:
        """Go to the step that is made with these weights; steps come in their order."""
        self._wanted = version + 1
        while self._step < self._wanted:
            self._step, samples = next(self._steps, (self._wanted, []))
            self._rows = {}
            for sample in samples:
                self._rows.setdefault(sample.problem, []).append(sample)

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Sample]]:
        """What the run drew for the problems of these requests."""
        return [self._of(request.problem.id) for request in requests]

    def _of(self, problem: str) -> list[Sample]:
        rows = self._rows.get(problem, [])
        if self._step != self._wanted or not rows:
            raise RunError(
                f"{self.run.directory}: no samples of problem {problem} at step {self._wanted}; "
                "replay with the settings and problems of that run, and no more steps"
            )
        # A sample that stood for several has left two rows if the first was new: it is one again.
        alike = groupby(rows, key=lambda row: replace(row, count=0, step=0, verdict=None))
        return [replace(one, count=sum(row.count for row in same)) for one, same in alike]


def recorded_results(replay: Run, step: int, problems: Sequence[Problem]) -> tuple[ProblemResult, ...] | None:
    """The results of a run that is replayed, if it was evaluated at this step."""
    if step not in replay.evaluated_steps():
        return None
    recorded, *_ = read_results(replay.evaluation_file(step))
    ids = {problem.id for problem in problems}
    return tuple(result for result in recorded if result.task_id in ids)
