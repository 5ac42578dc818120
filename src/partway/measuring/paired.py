"""Evaluations of the same problems side by side: paired differences with intervals."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from partway.errors import RunError
from partway.evaluation.results import metric_estimates, score_columns
from partway.evaluation.samples import is_share_of_problems
from partway.measuring.result_files import read_results
from passatk import Estimate, Scores, differences, estimates


@dataclass(frozen=True)
class Comparison:
    """Both sides of each metric on the problems both have, and `difference`: the second minus the first.

    The difference is taken problem by problem, so what makes a problem easy for both cancels.
    """

    first: Mapping[str, Estimate]
    second: Mapping[str, Estimate]
    difference: Mapping[str, Estimate]
    problems: int
    left_out: int

    def to_json(self) -> dict[str, Any]:
        """One object, metric by metric."""
        sides = {"first": self.first, "second": self.second, "difference": self.difference}
        metrics = {
            name: {side: asdict(estimates[name]) for side, estimates in sides.items()}
            for name in self.difference
        }
        return {"problems": self.problems, "left_out": self.left_out, "metrics": metrics}


def compare(
    first: str | Path | Sequence[str | Path],
    second: str | Path | Sequence[str | Path],
    *,
    only: Container[str] | None = None,
) -> Comparison:
    """Compare evaluations: summaries, samples files, or directories that hold one of them.

    Several on each side are seeds: the first of one side is compared with the first of the other, and the
    intervals are over seeds and problems. `only` names the problems to compare; without it all that both
    have are compared.
    """
    sides = [[side] if isinstance(side, str | Path) else side for side in (first, second)]
    pairs = [_Pair.of(Path(one), Path(two), only) for one, two in zip(*sides, strict=True)]
    columns = [[pair.first for pair in pairs], [pair.second for pair in pairs]]
    problems = [pair.common for pair in pairs]
    ones, twos = (metric_estimates(side, problems) for side in columns)
    return Comparison(
        ones,
        twos,
        gain_estimates(columns[1], columns[0], problems),
        problems=len({task_id for common in problems for task_id in common}),
        left_out=len({task_id for pair in pairs for task_id in pair.left_out}),
    )


def gain_estimates(
    second: Sequence[Scores], first: Sequence[Scores], problems: Sequence[Sequence[str]] = ()
) -> dict[str, Estimate]:
    """What the second have over the first, problem by problem.

    Where no problem differs, resampling would claim certainty: the interval is Wilson's for none of so many.
    """
    found = estimates(differences(second, first), problems=problems)
    for name, gain in found.items():
        if gain.low == gain.high == 0 and is_share_of_problems(name):
            count = min(len(run[name]) for run in second)
            most = estimates([{name: [0.0] * count}], shares={name})[name].high
            found[name] = Estimate(0.0, -most, most)
    return found


@dataclass(frozen=True)
class _Pair:
    """Two evaluations: the problems both have, and how each of these scores on either side."""

    common: tuple[str, ...]
    left_out: frozenset[str]
    first: Scores
    second: Scores

    @classmethod
    def of(cls, first: Path, second: Path, only: Container[str] | None) -> _Pair:
        sides = [read_results(path) for path in (first, second)]
        results = [
            {result.task_id: result for result in of_side if only is None or result.task_id in only}
            for of_side, _ in sides
        ]
        common = sorted(results[0].keys() & results[1].keys())  # by id: an interval belongs to an order
        if not common:
            raise RunError(
                f"{first} and {second} have no {'such ' if only is not None else ''}problem in common, "
                "expected two evaluations of one file"
            )
        plans = [plan for _, plan in sides]
        # A k that one side has too few samples for cannot be compared.
        ks = sorted({k for plan in plans for k in plan.ks if k <= min(plan.samples for plan in plans)})
        one, two = (
            score_columns([of_side[task_id] for task_id in common], ks, plan.language)
            for of_side, plan in zip(results, plans, strict=True)
        )
        # Shares of unique solutions fall as samples grow, so they need the same number of samples.
        if plans[0].samples != plans[1].samples:
            one, two = ({n: side[n] for n in side if not n.startswith("unique")} for side in (one, two))
        return cls(tuple(common), frozenset(results[0].keys() ^ results[1].keys()), one, two)
