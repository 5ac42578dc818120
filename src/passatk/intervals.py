"""Means over runs and problems with 95% intervals, the same ones in every table, page and file.

Of one or two runs an interval is over problems: that of a bootstrap with resamples without end, from the
moments of the scores, so that no digit hangs on a draw. From three runs up it is over trainings: Student's,
with one degree of freedom less than there are runs. Two trainings say too little about others.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONFIDENCE = 0.95
QUANTILE = 1.959964  # of the normal distribution, for this confidence
ENOUGH_RUNS = 3

# Of one run: by metric, a score of every problem.
Scores = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and the ends of its interval."""

    value: float
    low: float
    high: float


def estimates(
    runs: Sequence[Scores], *, shares: Container[str] = (), problems: Sequence[Sequence[str]] = ()
) -> dict[str, Estimate]:
    """The mean of every column that all runs have, with its interval.

    `problems` are the ids of each run's problems, in the order of its scores: more runs say nothing about
    other problems than those that several of them have. Columns named in `shares` are shares of problems:
    where all are 0 or all are 1, the scores would claim certainty, and Wilson's interval is taken.

    >>> round(estimates([{"pass@1": [0.0] * 20}], shares={"pass@1"})["pass@1"].high, 3)
    0.161
    """
    import numpy as np

    # A metric that one of the runs lacks has no mean over all.
    names = [name for name in (runs[0] if runs else {}) if all(len(run.get(name, ())) for run in runs)]
    found: dict[str, Estimate] = {}
    for name in names:
        means = [fsum(run[name]) / len(run[name]) for run in runs]
        value = fsum(means) / len(runs)
        if name in shares and value in (0.0, 1.0):
            found[name] = _wilson_at_the_edge(value, min(len(run[name]) for run in runs))
            continue
        each_P = [np.array(run[name], dtype=np.float64) for run in runs]
        moved_S_U = _influences(each_P, problems)
        is_few = len(runs) < ENOUGH_RUNS
        low, high = _over_problems(value, each_P, moved_S_U) if is_few else _over_runs(means, moved_S_U)
        if name in shares:
            low, high = max(low, 0.0), min(high, 1.0)
        found[name] = Estimate(value, low, high)
    return found


def differences(runs: Sequence[Scores], baselines: Sequence[Scores]) -> list[Scores]:
    """What each run has over its baseline, problem by problem; what makes a problem easy for both cancels."""
    return [
        {name: [b - a for a, b in zip(base[name], run[name], strict=True)] for name in run if name in base}
        for run, base in zip(runs, baselines, strict=True)
    ]


def _wilson_at_the_edge(value: float, problems: int) -> Estimate:
    """Wilson's interval for none or all of so many problems; with several runs, those of one are counted.

    Runs may have been measured on the same problems, and then more runs say nothing about other problems.
    """
    # Wilson's formula at a share of exactly 0 or 1, where all but this term is nothing.
    reach = QUANTILE**2 / (problems + QUANTILE**2)
    return Estimate(value, 0.0, reach) if value == 0.0 else Estimate(value, 1.0 - reach, 1.0)


def _influences(
    each_P: Sequence[NDArray[np.float64]], problems: Sequence[Sequence[str]]
) -> NDArray[np.float64]:
    """How much each problem (columns) moves the mean of all through each run (rows) when drawn once more."""
    import numpy as np

    ids = problems or [[f"{run}/{place}" for place in range(len(one))] for run, one in enumerate(each_P)]
    places = {one: place for place, one in enumerate(dict.fromkeys(i for of_run in ids for i in of_run))}
    moved_S_U = np.zeros((len(each_P), len(places)))
    for moved_U, scores_P, own in zip(moved_S_U, each_P, ids, strict=True):
        moved_U[[places[one] for one in own]] = (scores_P - scores_P.mean()) / len(scores_P) / len(each_P)
    return moved_S_U


def _over_problems(
    value: float, each_P: Sequence[NDArray[np.float64]], moved_S_U: NDArray[np.float64]
) -> tuple[float, float]:
    """The ends over problems, of these very runs: Cornish and Fisher's quantiles of the resampled mean."""
    moved_U = moved_S_U.sum(axis=0)
    second, third, fourth = (float((moved_U**power).sum()) for power in (2, 3, 4))
    lowest, highest = (sum(float(end(one)) for one in each_P) / len(each_P) for end in (min, max))
    if second < 1e-30:
        return value, value
    skew, excess, z = third / second**1.5, fourth / second**2 - 3 / len(moved_U), QUANTILE
    turned = (z**2 - 1) * skew / 6  # the same to both sides
    reach = z + (z**3 - 3 * z) * excess / 24 - (2 * z**3 - 5 * z) * skew**2 / 36
    low, high = (value + sqrt(second) * (turned + side * reach) for side in (-1, 1))
    return max(low, lowest), min(high, highest)


def _over_runs(means: Sequence[float], moved_S_U: NDArray[np.float64]) -> tuple[float, float]:
    """The ends over trainings; what runs have in common because they share problems is added."""
    count, value = len(means), fsum(means) / len(means)
    apart = fsum((mean - value) ** 2 for mean in means) / (count - 1) / count
    # The mean covariance of two runs, which their spread does not show: none where problems are their own.
    together = float((moved_S_U.sum(axis=0) ** 2).sum() - (moved_S_U**2).sum()) * count / (count - 1)
    reach = sqrt(student(count - 1) ** 2 * apart + QUANTILE**2 * max(0.0, together))
    return value - reach, value + reach


def student(degrees: int) -> float:
    """The quantile of Student's distribution for this confidence (Abramowitz and Stegun, 26.7.5).

    >>> [round(student(degrees), 2) for degrees in (2, 5, 30)]
    [4.3, 2.57, 2.04]
    """
    few, z = {2: 4.302653, 3: 3.182446, 4: 2.776445, 5: 2.570582, 6: 2.446912}, QUANTILE
    second, third = (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    by_terms = z + (z**3 + z) / 4 / degrees + second / degrees**2 + third / float(degrees**3)
    return few.get(degrees, by_terms)
