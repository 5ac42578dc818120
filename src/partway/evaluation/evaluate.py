"""Evaluating a model: draw samples of every problem, run each distinct one once, score.

What a problem's samples are depends on the seed and the problem only, never on its batch mates, so an
evaluation can be cut into batches of any size, stopped, and continued.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from partway.errors import EngineError, ProblemError, RunError
from partway.evaluation.journal import EvaluationJournal, key_of
from partway.evaluation.plan import EvaluationPlan, Phase
from partway.evaluation.results import Evaluation, read_summary
from partway.evaluation.samples import JudgedSample, ProblemResult, judge
from partway.execution import Programs
from partway.models.engine import Draw, Engine, Request
from partway.models.settings import SamplingSettings
from partway.problem import Problem
from partway.runs.digests import problems_digest
from partway.runs.evaluations import journal_beside
from partway.runs.run import keep_problems
from partway.solution import EMPTY, Solution

BATCH = 16  # problems drawn together
ROWS = 64  # samples worth drawing together: with fewer, a forward pass mostly reads weights


@runtime_checkable
class StreamingEngine(Protocol):
    """An engine that hands over each request's draws as soon as it has them, in any order."""

    def stream(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> Iterator[tuple[int, list[Draw]]]:
        """Pairs of a request's index and its draws."""
        ...


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
    model: str = "",
    journal: EvaluationJournal | None = None,
    batch_size: int | None = None,
    on_progress: Callable[[EvaluationProgress], None] = lambda progress: None,
    drafts_for: Callable[[Problem], tuple[Solution, ...]] = lambda problem: (),
) -> Evaluation:
    """Draw what `plan` says from every problem and score it.

    Finished problems are written to `journal` at once, and taken from it if it has them from the same `model`
    (a text that changes when the weights or the prompt do). `drafts_for` tells what samples may resemble.
    """
    check_problems(problems)
    journal = journal or EvaluationJournal()
    total = len(problems) * sum(phase.count for phase in plan.phases)
    done = resumed = 0
    finished: dict[str, dict[str, tuple[JudgedSample, ...]]] = {"samples": {}, "pass1": {}}
    for phase in plan.phases:
        rules = plan.programs.settings()
        # Whatever decides samples or verdicts is in the key, so a journal of anything else is not taken up.
        keys = {p.id: key_of(model, phase, rules, p.id, p.question, p.answer) for p in problems}
        of_phase = finished[phase.name]
        of_phase |= {
            task_id: samples for task_id, key in keys.items() if (samples := journal.find(key)) is not None
        }
        resumed += phase.count * len(of_phase)
        done += phase.count * len(of_phase)
        on_progress(EvaluationProgress(done, total, resumed))
        missing = [problem for problem in problems if problem.id not in of_phase]
        requests = [Request(problem, EMPTY, phase.count, drafts_for(problem)) for problem in missing]
        for batch in _drawn(engine, requests, phase, batch_size):
            for problem, samples in _judged(batch, plan.programs):
                journal.add(keys[problem.id], samples)
                of_phase[problem.id] = samples
            done += phase.count * len(batch)
            on_progress(EvaluationProgress(done, total, resumed))
    results = (
        ProblemResult(p.id, finished["samples"].get(p.id, ()), finished["pass1"].get(p.id, ()))
        for p in problems
    )
    return Evaluation.of(tuple(results), plan)


def evaluate_into(
    path: Path,
    engine: Engine,
    problems: Sequence[Problem],
    plan: EvaluationPlan,
    *,
    model: str,
    about: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    expand: bool = True,
    on_progress: Callable[[EvaluationProgress], None] = lambda progress: None,
) -> dict[str, Any]:
    """The summary in `path`: read if this evaluation is finished, continued if it was begun, else made.

    Results of another evaluation in its place are an error unless `overwrite`.
    """
    digest = key_of(model, plan, [(problem.id, problem.question, problem.answer) for problem in problems])
    if path.exists() and not overwrite:
        summary: dict[str, Any] = read_summary(path)
        if summary.get("digest") != digest:
            raise RunError(f"{path}: another evaluation's results; take another name or overwrite them")
        return summary
    journal = EvaluationJournal(journal_beside(path))
    evaluation = evaluate(engine, problems, plan, model=model, journal=journal, on_progress=on_progress)
    about = {**(about or {}), "problems_sha256": problems_digest(problems), "digest": digest}
    keep_problems(path, problems)
    evaluation.write(path, expand=expand, about=about)
    journal.remove()
    return {**about, **evaluation.to_json()}


def check_problems(problems: Sequence[Problem]) -> None:
    """Refuse problems that cannot be told apart, or none at all."""
    if not problems:
        raise ProblemError("no problems to evaluate, expected at least one")
    for task_id, count in Counter(problem.id for problem in problems).items():
        if count > 1:
            raise ProblemError(f"{count} problems have the id {task_id!r}, expected all ids to differ")


def _drawn(
    engine: Engine, requests: Sequence[Request], phase: Phase, batch_size: int | None
) -> Iterator[list[tuple[Problem, list[Draw]]]]:
    """The draws of every problem, in batches as they come."""
    if isinstance(engine, StreamingEngine):
        for index, draws in engine.stream(requests, phase.settings, phase.seed):
            yield [_checked(requests[index], draws)]
        return
    size = batch_size or max(BATCH, ROWS // phase.count)
    for start in range(0, len(requests), size):
        batch = requests[start : start + size]
        answers = engine.complete(batch, phase.settings, phase.seed)
        yield [_checked(request, draws) for request, draws in zip(batch, answers, strict=True)]


def _checked(request: Request, draws: list[Draw]) -> tuple[Problem, list[Draw]]:
    drawn = sum(draw.count for draw in draws)
    if drawn != request.count:
        raise EngineError(f"problem {request.problem.id}: {drawn} samples drawn, expected {request.count}")
    return request.problem, draws


def _judged(
    batch: Sequence[tuple[Problem, list[Draw]]], programs: Programs
) -> Iterator[tuple[Problem, tuple[JudgedSample, ...]]]:
    """The samples of each problem, most frequent first; a text is run once, however often it was drawn."""
    texts = list(dict.fromkeys(draw.text for _, draws in batch for draw in draws))
    traces = dict(zip(texts, programs.trace_all(texts), strict=True))
    for problem, draws in batch:
        counts: Counter[str] = Counter()
        for draw in draws:
            counts[draw.text] += draw.count
        # Equally frequent ones by text: files must not depend on the order in which samples came.
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        yield problem, tuple(judge(problem, text, count, traces[text], programs) for text, count in ranked)
