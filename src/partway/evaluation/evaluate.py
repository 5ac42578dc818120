"""Evaluating a model: draw samples of every problem, run each distinct one once, score.

What a problem's samples are depends on the seed and the problem only, never on its batch mates, so an
evaluation can be cut into batches of any size, stopped, and continued.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from partway import registry
from partway.errors import EngineError, ProblemError
from partway.evaluation.results import Evaluation, EvaluationPlan, Phase
from partway.evaluation.samples import Judged, ProblemResult, judge, whole
from partway.language import Language
from partway.models.engine import Engine, SamplingSettings
from partway.problem import Problem
from partway.sample import Request, Sample
from partway.solution import EMPTY, Solution

BATCH = 16  # problems drawn together, at least, by an engine that hands over all at once
ROWS = 64  # samples worth asking such a one for


@runtime_checkable
class StreamingEngine(Protocol):
    """An engine that hands over each request's samples as soon as it has them, in any order."""

    def stream(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> Iterator[tuple[int, list[Sample]]]:
        """Pairs of a request's index and its samples."""
        ...


class Journal(Protocol):
    """Keeps the samples of finished problems, so that an evaluation that was stopped can go on."""

    def finished(self, phase: Phase, problems: Sequence[Problem]) -> Mapping[str, tuple[Judged, ...]]:
        """The samples of each problem that was finished before, by its id."""

    def add(self, phase: Phase, problem: Problem, samples: tuple[Judged, ...]) -> None:
        """Keep the samples of a problem from now on."""


@dataclass(frozen=True, slots=True)
class EvaluationProgress:
    """How many samples are drawn and judged; `resumed` of them are from an earlier start."""

    done: int
    total: int
    resumed: int


def evaluate(
    engine: Engine,
    problems: Sequence[Problem],
    plan: EvaluationPlan,
    *,
    journal: Journal | None = None,
    batch_size: int = BATCH,
    on_progress: Callable[[EvaluationProgress], None] = lambda progress: None,
    drafts_for: Callable[[Problem], tuple[Solution, ...]] = lambda problem: (),
) -> Evaluation:
    """Draw what `plan` says from every problem and score it.

    Problems that `journal` has are not drawn again, and each is added to it as soon as it is finished.
    `drafts_for` tells what samples may resemble.
    """
    check_problems(problems)
    total = len(problems) * sum(phase.count for phase in plan.phases)
    done = resumed = 0
    finished: dict[str, dict[str, tuple[Judged, ...]]] = {"samples": {}, "pass1": {}}
    for phase in plan.phases:
        of_phase = finished[phase.name]
        of_phase |= journal.finished(phase, problems) if journal is not None else {}
        resumed += phase.count * len(of_phase)
        done += phase.count * len(of_phase)
        on_progress(EvaluationProgress(done, total, resumed))
        missing = [problem for problem in problems if problem.id not in of_phase]
        requests = [Request(problem, EMPTY, phase.count, drafts_for(problem)) for problem in missing]
        for batch in _drawn(engine, requests, phase, batch_size):
            for problem, samples in _judged(batch, plan.language):
                of_phase[problem.id] = samples
                if journal is not None:
                    journal.add(phase, problem, samples)
            done += phase.count * len(batch)
            on_progress(EvaluationProgress(done, total, resumed))
    results = (
        ProblemResult(p.id, finished["samples"].get(p.id, ()), finished["pass1"].get(p.id, ()))
        for p in problems
    )
    own = registry.part("metrics", "own")(problems, results, plan) if plan.own_metrics else results
    return Evaluation.of(tuple(own), plan)


def check_problems(problems: Sequence[Problem]) -> None:
    """Refuse an empty list of problems, or one in which two have the same id."""
    if not problems:
        raise ProblemError("no problems to evaluate, expected at least one")
    for task_id, count in Counter(problem.id for problem in problems).items():
        if count > 1:
            raise ProblemError(f"{count} problems have the id {task_id!r}, expected all ids to differ")


def _drawn(
    engine: Engine, requests: Sequence[Request], phase: Phase, batch_size: int
) -> Iterator[list[tuple[Problem, list[Sample]]]]:
    """The samples of every problem, in batches as they come."""
    if isinstance(engine, StreamingEngine):
        for index, samples in engine.stream(requests, phase.settings, phase.seed):
            yield [_checked(requests[index], samples)]
        return
    size = max(batch_size, ROWS // phase.count)
    for start in range(0, len(requests), size):
        batch = requests[start : start + size]
        answers = engine.complete(batch, phase.settings, phase.seed)
        yield [_checked(request, samples) for request, samples in zip(batch, answers, strict=True)]


def _checked(request: Request, samples: list[Sample]) -> tuple[Problem, list[Sample]]:
    drawn = sum(sample.count for sample in samples)
    if drawn != request.count:
        raise EngineError(f"problem {request.problem.id}: {drawn} samples drawn, expected {request.count}")
    return request.problem, samples


def _judged(
    batch: Sequence[tuple[Problem, list[Sample]]], language: Language
) -> Iterator[tuple[Problem, tuple[Judged, ...]]]:
    """The samples of each problem, most frequent first; each distinct one is run once."""
    drawn = [(problem, _counts(samples)) for problem, samples in batch]
    traces = iter(language.trace_all([(problem, text) for problem, counts in drawn for text in counts]))
    luck = registry.parts("metrics").get("luck")
    for problem, counts in drawn:
        found = {text: next(traces) for text in counts}
        # Equally frequent ones by text: files must not depend on the order in which samples came.
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        pairs = [
            (judge(problem, whole(problem.id, text, count), found[text], language), found[text])
            for text, count in ranked
        ]
        yield problem, tuple(luck.load()(problem, pairs, language) if luck else (one for one, _ in pairs))


def _counts(samples: Sequence[Sample]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for sample in samples:
        counts[sample.text] += sample.count
    return counts
