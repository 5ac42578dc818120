"""The outcome of an arm: its scores on every test problem, for each table, and what it spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from partway.arms.arms import Arm
from partway.arms.experiment import Experiment
from partway.arms.selecting import SELECTED, Choice
from partway.evaluation import Estimate
from partway.evaluation.results import metric_estimates
from partway.measuring.paired import gain_estimates
from partway.runs import Run
from runreports.summaries import curves_of, work_of


@dataclass(frozen=True)
class Spent:
    """What training took; evaluations, which are the same for all, are not counted."""

    steps: int = 0
    samples: int = 0
    tokens_sampled: int = 0
    tokens_learned: int = 0
    seconds: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @classmethod
    def of(cls, run: Run) -> Spent:
        """What a finished run says it took."""
        work = work_of(run, curves_of(run.metrics()))
        exploring, learning = work["exploring"], work["learning"]
        return cls(
            run.last_step(),
            exploring.samples or 0,
            exploring.tokens or 0,
            learning.tokens or 0,
            sum(work[span].seconds for span in ("exploring", "executing", "learning")),
        )


@dataclass(frozen=True)
class Outcome:
    """An arm with one seed: the run its model is from, if any, and what each table shows of it."""

    arm: Arm
    seed: int
    run: Run | None
    tables: Mapping[str, Choice]
    spent: Spent
    measured_on: tuple[str, ...]  # the ids of its test problems, in the order of their scores


def of_arm(outcomes: Iterable[Outcome], name: str) -> list[Outcome]:
    """The outcomes of one arm, a seed each."""
    return [outcome for outcome in outcomes if outcome.arm.name == name]


def means(outcomes: Sequence[Outcome], table: str = SELECTED) -> dict[str, Estimate]:
    """Every metric over seeds and problems."""
    scores = [outcome.tables[table].scores for outcome in outcomes]
    return metric_estimates(scores, [outcome.measured_on for outcome in outcomes])


def gains(
    outcomes: Sequence[Outcome], baseline: Sequence[Outcome], table: str = SELECTED
) -> dict[str, Estimate]:
    """What the outcomes have over those of `baseline` with the same seeds, problem by problem."""
    # Arms share their problems: what is hard for both cancels out, and the interval is narrower for it.
    own, other = ([outcome.tables[table].scores for outcome in side] for side in (outcomes, baseline))
    return gain_estimates(own, other, [outcome.measured_on for outcome in outcomes])


def mean_spent(outcomes: Sequence[Outcome]) -> Spent:
    """What one run of the arm took on average."""
    total = sum((outcome.spent for outcome in outcomes), Spent())
    count = len(outcomes)
    # Steps, samples and tokens are counted, so their means are shown whole; time is not.
    whole = {f.name: round(getattr(total, f.name) / count) for f in fields(Spent) if f.name != "seconds"}
    return Spent(**whole, seconds=total.seconds / count)


def buffer_sizes(outcomes: Sequence[Outcome]) -> tuple[float | None, float | None]:
    """Fully-correct (the reference included) and partially-correct solutions per problem at the end."""
    buffers = [buffer for outcome in outcomes if outcome.run for buffer in outcome.run.buffers().values()]
    if not buffers:
        return None, None
    full = sum(len(buffer.fully_correct) for buffer in buffers)
    partial = sum(len(buffer.partially_correct) for buffer in buffers)
    return full / len(buffers), partial / len(buffers)


def to_json(experiment: Experiment, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Everything as plain numbers: by arm and table every metric, what it has over the first arm, choices."""
    first = experiment.arms[0]
    baseline = of_arm(outcomes, first.name)
    arms = {}
    for arm in experiment.arms:
        own = of_arm(outcomes, arm.name)
        tables = {
            table: {
                "metrics": _plain(means(own, table)),
                f"minus_{first.name}": _plain(gains(own, baseline, table)),
                "by_seed": {outcome.seed: _plain(means([outcome], table)) for outcome in own},
                "chosen": {outcome.seed: outcome.tables[table].chosen for outcome in own},
            }
            for table in own[0].tables
        }
        arms[arm.name] = {
            **{key: value for key, value in asdict(arm).items() if key != "name"},
            "spent": asdict(mean_spent(own)),
            "solutions_per_problem": dict(zip(("fcs", "pcs"), buffer_sizes(own), strict=True)),
            "tables": tables,
        }
    return {
        "model": experiment.model,
        "data": None if experiment.data is None else str(experiment.data),
        "seeds": list(experiment.seeds),
        "problems": {"train": experiment.train, "dev": experiment.dev, "test": experiment.test},
        "budget": {"steps": experiment.steps, "samples": experiment.samples},
        "rules": experiment.rules(),
        "arms": arms,
    }


def _plain(found: Mapping[str, Estimate]) -> dict[str, dict[str, float]]:
    return {name: asdict(estimate) for name, estimate in found.items()}
