"""A run's recorded samples and evaluations in place of new ones (`--replay`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from transformers import PreTrainedModel

from partway.errors import RunError
from partway.evaluation import Judged
from partway.measuring.result_files import read_results
from partway.models.engine import Engine, SamplingSettings, Wrapped
from partway.runs import Run
from partway.sample import Request, Sample


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
                "replay with the settings and problems of that run, and at most as many steps"
            )
        # A sample that stood for several has left two rows if the first was new: it is one again.
        alike = groupby(rows, key=lambda row: replace(row, count=0, step=0, verdict=None))
        return [replace(one, count=sum(row.count for row in same)) for one, same in alike]


class Evaluated(Wrapped):
    """The samples of a run's evaluations, at the steps at which it was evaluated in the same way."""

    def __init__(self, engine: Engine, run: Run) -> None:
        super().__init__(engine)
        self.run = run
        self._step: int | None = None  # of the weights, while training goes on

    def update(self, weights: PreTrainedModel, version: int) -> None:
        """Go to the step of these weights."""
        self._step = version
        super().update(weights, version)

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Sample]]:
        """What the run drew for these problems, if it did; otherwise what the engine draws."""
        drawn = self._drawn(settings, seed)
        if any(request.problem.id not in drawn for request in requests):
            return super().complete(requests, settings, seed)
        return [[one.sample for one in drawn[request.problem.id]] for request in requests]

    def _drawn(self, settings: SamplingSettings, seed: int) -> dict[str, tuple[Judged, ...]]:
        if self._step not in self.run.evaluated_steps():
            return {}
        results, plan = read_results(self.run.evaluation_file(self._step))
        for phase in plan.phases:
            if (phase.settings, phase.seed) == (settings, seed):
                is_pass1 = phase.name == "pass1"
                return {one.task_id: one.pass1 if is_pass1 else one.samples for one in results}
        return {}

    def rest(self) -> None:
        """The run ends here: whoever evaluates later has other weights."""
        self._step = None
        super().rest()


def replayed(engine: Engine, run: Run) -> tuple[Engine, Engine]:
    """What evaluations and exploring ask when a run is replayed."""
    evaluated = Evaluated(engine, run)
    return evaluated, Recorded(evaluated, run)
