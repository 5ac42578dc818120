"""Means over runs with 95% intervals, smoothed curves, and curves with only as many points as can be seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from partway.buffer import Verdict
from partway.evaluation import Estimate, estimates
from runreports.summaries import Curve

MAX_POINTS = 400
MAX_STRETCHES = 60
SMOOTHING = 0.6  # the weight of what came before
FEW_POINTS = 30  # are shown as they are


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
        result.append(average / (1 - weight**count))  # the weights so far add up to this
    return tuple(result)


def mean_band(curves: Sequence[Curve]) -> Band:
    """The mean over runs at every step that some run has, at most so many as can be seen."""
    steps = thinned(sorted({step for curve in curves for step in curve}))
    together: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)  # steps by the runs that have them
    for step in steps:
        together[tuple(run for run, curve in enumerate(curves) if step in curve)].append(step)
    found: dict[str, Estimate] = {}
    for runs, those in together.items():  # a run has one number at a step, so only runs are resampled
        found |= estimates([{str(step): [curves[run][step]] for step in those} for run in runs])
    at_steps = [found[str(step)] for step in steps]
    means, lows, highs = ([getattr(e, end) for e in at_steps] for end in ("value", "low", "high"))
    return Band(tuple(steps), tuple(means), tuple(lows), tuple(highs))


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
    """The verdicts of all runs together, in no more stretches than a reader can distinguish."""
    drawn: defaultdict[int, float] = defaultdict(float)
    counts: dict[Verdict, defaultdict[int, float]] = {verdict: defaultdict(float) for verdict in Verdict}
    for curves in runs:
        total = curves.get("samples/drawn", {})
        for step, count in total.items():
            drawn[step] += count
        # Shares are logged; runs that drew more count for more once these are numbers of samples again.
        for verdict in Verdict:
            for step, share in curves.get(f"samples/frac_{verdict}", {}).items():
                counts[verdict][step] += share * total.get(step, 0)
    # A stretch ends where something was drawn, so that none is empty.
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
