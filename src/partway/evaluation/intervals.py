"""Means over runs and problems with 95% intervals: the one bootstrap that every table, page and file uses."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
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
    runs: Sequence[Scores], *, shares: Container[str] = (), problems: Sequence[Sequence[str]] = ()
) -> dict[str, Estimate]:
    """The mean of every column that all runs have, with its interval over runs and the problems of each.

    Each resample draws as many runs as there are and, for each of them, as many problems as it has, the same
    ones for every column. Of one run only problems are drawn. `problems` are the ids of each run's problems,
    in the order of its scores: one that several runs have is drawn for all of them, because more runs say
    nothing about other problems. Columns named in `shares` are shares of problems: where all are 0 or all
    are 1, resampling would claim certainty, and Wilson's interval is taken.

    >>> round(estimates([{"pass@1": [0.0] * 20}], shares={"pass@1"})["pass@1"].high, 3)
    0.161
    """
    # A metric that one of the runs lacks has no mean over all.
    names = [name for name in (runs[0] if runs else {}) if all(len(run.get(name, ())) for run in runs)]
    if not names:
        return {}
    ends = zip(*_ends(_resampled_means(runs, names, problems)).tolist(), strict=True)
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
    runs: Sequence[Scores], names: Sequence[str], problems: Sequence[Sequence[str]]
) -> NDArray[np.float64]:
    """The mean of every column in every resample."""
    import numpy as np

    # A fixed seed: the same scores have the same interval in every table, file and process.
    rng = np.random.default_rng(0)
    # How often each run is drawn in each resample; R resamples, S runs, P problems, N columns.
    times_R_S = rng.multinomial(len(runs), np.full(len(runs), 1 / len(runs)), size=RESAMPLES)
    each_P_N = [np.array([run[name] for name in names], dtype=np.float64).T for run in runs]
    if sum(map(len, problems)) > len({one for of_run in problems for one in of_run}):
        return _drawn_together(each_P_N, times_R_S, problems, rng)
    return _drawn_apart(each_P_N, times_R_S, rng)


def _drawn_apart(
    each_P_N: Sequence[NDArray[np.float64]], times_R_S: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """The means where every run has problems of its own."""
    import numpy as np

    means_R_N = np.zeros((RESAMPLES, each_P_N[0].shape[1]))
    for scores_P_N, times_R in zip(each_P_N, times_R_S.T, strict=True):
        for rows, weights_R_P in _draws(times_R, len(scores_P_N), rng):
            # A run drawn twice draws twice as many problems: that is the distribution of two draws of it.
            means_R_N[rows] += weights_R_P @ scores_P_N / len(scores_P_N) / len(each_P_N)
    return means_R_N


def _drawn_together(
    each_P_N: Sequence[NDArray[np.float64]],
    times_R_S: NDArray[np.int64],
    problems: Sequence[Sequence[str]],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """The means where runs share problems, all or some: those of all runs are drawn as one set."""
    import numpy as np

    places = {one: place for place, one in enumerate(sorted({i for run in problems for i in run}))}
    own_S_P = [[places[one] for one in of_run] for of_run in problems]
    means_R_N = np.zeros((RESAMPLES, each_P_N[0].shape[1]))
    for rows, weights_R_U in _draws(np.ones(RESAMPLES, dtype=np.int64), len(places), rng):
        for scores_P_N, times_R, own_P in zip(each_P_N, times_R_S[rows].T, own_S_P, strict=True):
            weights_R_P = weights_R_U[:, own_P]
            # Where none of a run's problems is drawn, its mean is that of all.
            weights_R_P = weights_R_P + (weights_R_P.sum(axis=1, keepdims=True) == 0)
            means = weights_R_P @ scores_P_N / weights_R_P.sum(axis=1, keepdims=True)
            means_R_N[rows] += times_R[:, None] * means / len(each_P_N)
    return means_R_N


def _draws(
    times_R: NDArray[np.int64], problems: int, rng: np.random.Generator
) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """How often each problem is drawn when all are drawn so many times, resamples in blocks."""
    import numpy as np

    block = max(1, 4_000_000 // problems)  # bounds memory
    for start in range(0, len(times_R), block):
        rows = slice(start, start + block)
        yield rows, rng.multinomial(times_R[rows] * problems, np.full(problems, 1 / problems))


def _ends(means_R_N: NDArray[np.float64]) -> NDArray[np.float64]:
    """The lower and the upper end of each column's interval."""
    import numpy as np

    tail = 100 * (1 - CONFIDENCE) / 2
    ends: NDArray[np.float64] = np.percentile(means_R_N, [tail, 100 - tail], axis=0)
    return ends
