"""Means over runs with 95% intervals, smoothing, and curves thinned to what an eye can see."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from partway.buffer import Verdict
from partway.evaluation import Estimate
from partway.evaluation.metrics import CONFIDENCE
from partway.reports.summaries import Curve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 1_000
MAX_POINTS = 400
MAX_STRETCHES = 60
SMOOTHING = 0.6


@dataclass(frozen=True)
class Band:
    """A mean over runs at each step with its interval, which has no width where there is one run only."""

    steps: tuple[int, ...]
    means: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]

    @property
    def has_width(self) -> bool:
        """Whether there is an interval to show."""
        return self.lows != self.highs

    def smoothed(self) -> Band:
        """The band with its mean and ends smoothed alike."""
        return Band(self.steps, *(smoothed(values) for values in (self.means, self.lows, self.highs)))


def smoothed(values: Sequence[float], weight: float = SMOOTHING) -> tuple[float, ...]:
    """The exponential moving average, with the bias to its start taken out.

    >>> smoothed([1.0, 1.0, 1.0])
    (1.0, 1.0, 1.0)
    """
    average, result = 0.0, []
    for count, value in enumerate(values, 1):
        average = weight * average + (1 - weight) * value
        result.append(average / (1 - weight**count))
    return tuple(result)


def mean_band(curves: Sequence[Curve]) -> Band:
    """The mean over runs at every step that some run has, at most so many as can be seen."""
    import numpy as np

    by_run = [dict(zip(curve.steps, curve.values, strict=True)) for curve in curves]
    steps = thinned(sorted({step for points in by_run for step in points}))
    together: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)  # steps by the runs that have them
    for step in steps:
        together[tuple(run for run, points in enumerate(by_run) if step in points)].append(step)
    rows: dict[int, tuple[float, float, float]] = {}
    for runs, those in together.items():
        values_S_T = np.array([[by_run[run][step] for step in those] for run in runs])
        choices_R_S = np.random.default_rng(0).integers(0, len(runs), (RESAMPLES, len(runs)))
        lows_T, highs_T = _ends(values_S_T[choices_R_S].mean(axis=1)) if len(runs) > 1 else values_S_T[[0, 0]]
        columns = (values_S_T.mean(axis=0).tolist(), lows_T.tolist(), highs_T.tolist())
        rows |= dict(zip(those, zip(*columns, strict=True), strict=True))
    means, lows, highs = (tuple(rows[step][column] for step in steps) for column in range(3))
    return Band(tuple(steps), means, lows, highs)


@dataclass(frozen=True)
class Shares:
    """The share of every verdict among the self-samples of successive stretches of training."""

    edges: tuple[int, ...]  # one more than there are stretches
    shares: Mapping[Verdict, tuple[float, ...]]
    totals: Mapping[Verdict, float]  # of all stretches

    @property
    def drawn(self) -> int:
        """How many self-samples there are."""
        return round(sum(self.totals.values()))


def pooled_shares(runs: Sequence[Mapping[str, Curve]]) -> Shares:
    """The verdicts of all runs together, in at most so many stretches as can be told apart."""
    drawn: defaultdict[int, float] = defaultdict(float)
    counts: dict[Verdict, defaultdict[int, float]] = {verdict: defaultdict(float) for verdict in Verdict}
    for curves in runs:
        total = curves.get("samples/drawn", Curve())
        at_step = dict(zip(total.steps, total.values, strict=True))
        for step, count in at_step.items():
            drawn[step] += count
        for verdict in Verdict:
            curve = curves.get(f"samples/frac_{verdict}", Curve())
            for step, share in zip(curve.steps, curve.values, strict=True):
                counts[verdict][step] += share * at_step[step]
    ends = thinned([step for step in sorted(drawn) if drawn[step]], MAX_STRETCHES)
    edges = (0, *ends)
    return Shares(
        edges,
        {verdict: _in_stretches(counts[verdict], drawn, edges) for verdict in Verdict},
        {verdict: sum(counts[verdict].values()) for verdict in Verdict},
    )


def _in_stretches(
    counts: Mapping[int, float], drawn: Mapping[int, float], edges: Sequence[int]
) -> tuple[float, ...]:
    """For each stretch the share of `counts` in `drawn`."""
    stretches = [[step for step in drawn if low < step <= high] for low, high in pairwise(edges)]
    return tuple(sum(counts.get(s, 0.0) for s in steps) / sum(drawn[s] for s in steps) for steps in stretches)


def thinned(steps: Sequence[int], most: int = MAX_POINTS) -> list[int]:
    """Evenly chosen steps, the first and the last among them.

    >>> thinned([1, 2, 3, 4, 5], most=3)
    [1, 3, 5]
    """
    if len(steps) <= most:
        return list(steps)
    return [steps[round(index * (len(steps) - 1) / (most - 1))] for index in range(most)]


def bootstrap_of_runs(runs: Sequence[Mapping[str, Sequence[float]]]) -> dict[str, Estimate]:
    """The mean of every column that all runs have, over runs and the problems of each.

    Each resample draws as many runs as there are and, for each of them, as many problems as it has; the same
    ones for every column. A run drawn twice draws twice as many problems: that is the same distribution.
    """
    import numpy as np

    names = [name for name in (runs[0] if runs else {}) if all(len(run.get(name, ())) for run in runs)]
    if not names:
        return {}
    rng = np.random.default_rng(0)
    times_R_S = rng.multinomial(len(runs), np.full(len(runs), 1 / len(runs)), size=RESAMPLES)
    means_R_N = np.zeros((RESAMPLES, len(names)))
    exact_N = np.zeros(len(names))
    for run, times_R in zip(runs, times_R_S.T, strict=True):
        scores_P_N = np.array([run[name] for name in names], dtype=np.float64).T
        exact_N += scores_P_N.mean(axis=0) / len(runs)
        means_R_N += _resampled(scores_P_N, times_R, rng) / len(runs)
    columns = (exact_N.tolist(), *_ends(means_R_N).tolist())
    return {name: Estimate(*values) for name, *values in zip(names, *columns, strict=True)}


def _resampled(
    scores_P_N: NDArray[np.float64], times_R: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """For each resample the sum of means over so many draws of all problems."""
    import numpy as np

    problems = len(scores_P_N)
    sums_R_N = np.empty((len(times_R), scores_P_N.shape[1]))
    block = max(1, 4_000_000 // problems)  # bounds memory
    for start in range(0, len(times_R), block):
        part = times_R[start : start + block]
        weights = rng.multinomial(part * problems, np.full(problems, 1 / problems))
        sums_R_N[start : start + block] = weights @ scores_P_N / problems
    return sums_R_N


def _ends(means_R_N: NDArray[np.float64]) -> NDArray[np.float64]:
    """The lower and the upper end of each column's interval."""
    import numpy as np

    tail = 100 * (1 - CONFIDENCE) / 2
    ends: NDArray[np.float64] = np.percentile(means_R_N, [tail, 100 - tail], axis=0)
    return ends
