"""Means over runs and problems with 95% intervals: the one bootstrap behind every table, page and file."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 2_000
CONFIDENCE = 0.95
QUANTILE = 1.959964  # of the normal distribution, for this confidence

# Of one run: by metric, a score of every problem.
Scores = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and the ends of its interval."""

    value: float
    low: float
    high: float


def estimates(
    runs: Sequence[Scores], *, shares: Container[str] = (), same_problems: bool = False
) -> dict[str, Estimate]:
    """The mean of every column that all runs have, with its interval over runs and the problems of each.

    Each resample draws as many runs as there are and, for each of them, as many problems as it has; the same
    ones for every column, and for every run where all have the `same_problems`: more runs say nothing about
    other problems. Of one run only problems are drawn. Columns named in `shares` are shares of problems:
    where all are 0 or all are 1, resampling would claim certainty, and Wilson's interval is taken.

    >>> round(estimates([{"pass@1": [0.0] * 20}], shares={"pass@1"})["pass@1"].high, 3)
    0.161
    """
    # A metric that one of the runs lacks has no mean over all.
    names = [name for name in (runs[0] if runs else {}) if all(len(run.get(name, ())) for run in runs)]
    if not names:
        return {}
    ends = zip(*_ends(_resampled_means(runs, names, same_problems)).tolist(), strict=True)
    found: dict[str, Estimate] = {}
    for name, (low, high) in zip(names, ends, strict=True):
        value = fsum(fsum(run[name]) / len(run[name]) for run in runs) / len(runs)
        if name in shares and value in (0.0, 1.0):
            low, high = _wilson_at_the_edge(value, min(len(run[name]) for run in runs))
        found[name] = Estimate(value, low, high)
    return found


def differences(runs: Sequence[Scores], baselines: Sequence[Scores]) -> list[Scores]:
    """What each run has over its baseline, problem by problem; what makes a problem easy for both cancels."""
    return [
        {name: [b - a for a, b in zip(base[name], run[name], strict=True)] for name in run if name in base}
        for run, base in zip(runs, baselines, strict=True)
    ]


def _wilson_at_the_edge(value: float, problems: int) -> tuple[float, float]:
    """Wilson's interval for none or all of so many problems; with several runs, those of one are counted.

    Runs may have been measured on the same problems, and then more runs say nothing about other problems.
    """
    # Wilson's formula at a share of exactly 0 or 1, where all but this term is nothing.
    reach = QUANTILE**2 / (problems + QUANTILE**2)
    return (0.0, reach) if value == 0.0 else (1.0 - reach, 1.0)


def _resampled_means(
    runs: Sequence[Scores], names: Sequence[str], same_problems: bool
) -> NDArray[np.float64]:
    """The mean of every column in every resample."""
    import numpy as np

    # A fixed seed: the same scores have the same interval in every table, file and process.
    rng = np.random.default_rng(0)
    # How often each run is drawn in each resample; R resamples, S runs, P problems, N columns.
    times_R_S = rng.multinomial(len(runs), np.full(len(runs), 1 / len(runs)), size=RESAMPLES)
    each_P_N = [np.array([run[name] for name in names], dtype=np.float64).T for run in runs]
    if same_problems:
        # The columns of all runs beside each other: a problem that is drawn is drawn for all of them.
        once_R = np.ones(RESAMPLES, dtype=np.int64)
        means_R_SN = _sums_of_means(np.concatenate(each_P_N, axis=1), once_R, rng)
        means_R_S_N = means_R_SN.reshape(RESAMPLES, len(runs), len(names))
        of_the_same: NDArray[np.float64] = np.einsum("rs,rsn->rn", times_R_S, means_R_S_N) / len(runs)
        return of_the_same
    means_R_N = np.zeros((RESAMPLES, len(names)))
    for scores_P_N, times_R in zip(each_P_N, times_R_S.T, strict=True):
        means_R_N += _sums_of_means(scores_P_N, times_R, rng) / len(runs)
    return means_R_N


def _sums_of_means(
    scores_P_N: NDArray[np.float64], times_R: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """For each resample of runs the sum of means over so many draws of all problems of this run.

    A run drawn twice draws twice as many problems: that is the distribution of two draws of it.
    """
    import numpy as np

    problems = len(scores_P_N)
    sums_R_N = np.empty((len(times_R), scores_P_N.shape[1]))
    block = max(1, 4_000_000 // problems)  # bounds memory
    for start in range(0, len(times_R), block):
        part = times_R[start : start + block]
        # How often each problem is drawn: a resample is a row of counts, its mean a product of matrices.
        weights = rng.multinomial(part * problems, np.full(problems, 1 / problems))
        sums_R_N[start : start + block] = weights @ scores_P_N / problems
    return sums_R_N


def _ends(means_R_N: NDArray[np.float64]) -> NDArray[np.float64]:
    """The lower and the upper end of each column's interval."""
    import numpy as np

    tail = 100 * (1 - CONFIDENCE) / 2
    ends: NDArray[np.float64] = np.percentile(means_R_N, [tail, 100 - tail], axis=0)
    return ends
