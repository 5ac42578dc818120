"""Evaluating a model: draw samples of every problem, run each distinct one once, score.

What a problem's samples are depends on the seed and the problem only, never on its batch mates, so an
evaluation can be cut into batches of any size, stopped, and continued from its journal.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from partway.errors import EngineError, ProblemError, RunError
from partway.evaluation.results import Evaluation, EvaluationPlan, Phase, read_summary
from partway.evaluation.samples import Judged, ProblemResult, judge, whole
from partway.language import Language
from partway.models.engine import Engine, Request, SamplingSettings
from partway.problem import Problem
from partway.runs.rows import journal_beside, problems_digest
from partway.runs.run import keep_problems
from partway.sample import Sample
from partway.solution import EMPTY, Solution


class EvaluationJournal:
    """The samples of finished problems, each under a key that names everything they depend on.

    Lines under other keys or cut off in the middle do no harm. Without a path, nothing is kept.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._finished: dict[str, tuple[Judged, ...]] = {}
        if self.path is not None and self.path.exists():
            # What stands after the last end of line is no line yet: its writer was killed.
            *lines, cut_off = self.path.read_bytes().split(b"\n")
            self._finished.update(entry for line in lines for entry in _entries(line))
            with self.path.open("r+b") as stream:
                stream.truncate(self.path.stat().st_size - len(cut_off))

    def find(self, key: str) -> tuple[Judged, ...] | None:
        """The samples under `key`, None if it is not finished."""
        return self._finished.get(key)

    def add(self, key: str, samples: Sequence[Judged]) -> None:
        """Keep `samples` from now on."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"key": key, "samples": [sample.to_json() for sample in samples]})
        with self.path.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(f"{line}\n")

    def remove(self) -> None:
        """Delete the file: the evaluation is finished and its results are written."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def key_of(*parts: object) -> str:
    """A short text that stands for `parts`, the same in every process.

    >>> key_of("model", 0.8) == key_of("model", 0.8) != key_of("model", 0.2)
    True
    """
    # Not `hash`, which differs from process to process; half a character may be among the parts.
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _entries(line: bytes) -> list[tuple[str, tuple[Judged, ...]]]:
    """What a line says; a damaged one says nothing, and its problem is done again."""
    try:
        row = json.loads(line)
        return [(row["key"], tuple(Judged.from_json(sample) for sample in row["samples"]))]
    except (ValueError, KeyError, TypeError):
        return []


BATCH = 16  # problems drawn together
ROWS = 64  # samples worth drawing together: with fewer, a forward pass mostly reads weights


@runtime_checkable
class StreamingEngine(Protocol):
    """An engine that hands over each request's samples as soon as it has them, in any order."""

    def stream(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> Iterator[tuple[int, list[Sample]]]:
        """Pairs of a request's index and its samples."""
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
    finished: dict[str, dict[str, tuple[Judged, ...]]] = {"samples": {}, "pass1": {}}
    for phase in plan.phases:
        keys = keys_of(model, phase, plan.language, problems)
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
            for problem, samples in _judged(batch, plan.language):
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
    keys = [keys_of(model, phase, plan.language, problems) for phase in plan.phases]
    digest = key_of(plan.ks, keys)
    if path.exists() and not overwrite:
        summary: dict[str, Any] = read_summary(path)
        if summary.get("digest") != digest:
            raise RunError(f"{path}: another evaluation's results; take another --name, or --overwrite them")
        return summary
    journal = EvaluationJournal(journal_beside(path))
    evaluation = evaluate(engine, problems, plan, model=model, journal=journal, on_progress=on_progress)
    about = {**(about or {}), "problems_sha256": problems_digest(problems), "digest": digest}
    keep_problems(path, problems)
    evaluation.write(path, expand=expand, about=about)
    journal.remove()
    return {**about, **evaluation.to_json()}


def keys_of(model: str, phase: Phase, language: Language, problems: Sequence[Problem]) -> dict[str, str]:
    """For each problem a text that stands for all that decides its samples and the verdicts on them."""
    shared = model, phase, language.settings()
    return {p.id: key_of(*shared, p.id, p.question, p.answer, p.context) for p in problems}


def check_problems(problems: Sequence[Problem]) -> None:
    """Refuse problems that cannot be told apart, or none at all."""
    if not problems:
        raise ProblemError("no problems to evaluate, expected at least one")
    for task_id, count in Counter(problem.id for problem in problems).items():
        if count > 1:
            raise ProblemError(f"{count} problems have the id {task_id!r}, expected all ids to differ")


def _drawn(
    engine: Engine, requests: Sequence[Request], phase: Phase, batch_size: int | None
) -> Iterator[list[tuple[Problem, list[Sample]]]]:
    """The samples of every problem, in batches as they come."""
    if isinstance(engine, StreamingEngine):
        for index, samples in engine.stream(requests, phase.settings, phase.seed):
            yield [_checked(requests[index], samples)]
        return
    size = batch_size or max(BATCH, ROWS // phase.count)
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
    for problem, counts in drawn:
        found = {text: next(traces) for text in counts}
        # Equally frequent ones by text: files must not depend on the order in which samples came.
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        yield (
            problem,
            tuple(
                judge(problem, whole(problem.id, text, count), found[text], language)
                for text, count in ranked
            ),
        )


def _counts(samples: Sequence[Sample]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for sample in samples:
        counts[sample.text] += sample.count
    return counts
