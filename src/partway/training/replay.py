"""Replaying a run: its recorded samples in place of sampling.

What servers draw cannot be drawn again, but what became of it can: the same samples, considered in the same
steps, give the same buffers and, on a CPU, the same weights to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from partway.errors import RunError
from partway.evaluation import ProblemResult
from partway.evaluation.results import read_results
from partway.execution import Programs
from partway.models.engine import Draw, Request
from partway.problem import Problem
from partway.runs import Run, SelfSample
from partway.sampling import Drawn


class Recording:
    """The samples of a run, step by step."""

    def __init__(self, run: Run, programs: Programs) -> None:
        self.run = run
        self.programs = programs
        # Read as training goes, with one step in memory: a run may have millions of samples.
        self._steps: Iterator[tuple[int, list[SelfSample]]] = (
            (step, list(rows)) for step, rows in groupby(run.samples(), key=lambda sample: sample.step)
        )
        self._step = 0
        self._rows: dict[str, list[SelfSample]] = {}

    def drawn(self, step: int, problems: Sequence[Problem]) -> Drawn:
        """What the run drew for these problems in a step; steps are asked for in their order."""
        while self._step < step:
            self._step, samples = next(self._steps, (step, []))
            self._rows = {}
            for sample in samples:
                self._rows.setdefault(sample.problem, []).append(sample)
        return [self._of_problem(step, problem) for problem in problems]

    def results(self, step: int) -> tuple[ProblemResult, ...] | None:
        """What the run's evaluation at a step found, None if it has none."""
        if step not in self.run.evaluated_steps():
            return None
        return read_results(self.run.evaluation_file(step))[0]

    def _of_problem(self, step: int, problem: Problem) -> tuple[Request, list[Draw]]:
        rows = self._rows.get(problem.id, [])
        if self._step != step or not rows:
            raise RunError(
                f"{self.run.directory}: no samples of problem {problem.id} at step {step}; "
                "replay with the settings and problems of that run, and no more steps"
            )
        prefix = self.programs.parse(rows[0].prefix)
        draws = [
            replace(
                Draw.of(prefix, first.completion, sum(counts), first.finished, first.log_prob),
                weights=first.weights,
            )
            for first, counts in _merged(rows)
        ]
        return Request(problem, prefix, sum(draw.count for draw in draws)), draws


def _merged(rows: Sequence[SelfSample]) -> Iterator[tuple[SelfSample, list[int]]]:
    """Draws again: a draw that stood for several samples left two rows when its first was news."""
    alike = groupby(rows, key=lambda row: (row.completion, row.finished, row.log_prob, row.weights))
    for _, group in alike:
        first, *others = group
        yield first, [first.count, *(other.count for other in others)]
