"""Chooses which model of an arm is measured, by the same rules for all arms and on dev only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from passatk import Scores
from runreports.summaries import passes_in

LARGEST = f"pass@{sys.maxsize}"  # nearest to it is the largest k that dev has
SELECTED, LAST, BEST_PER_K = "selected", "last", "best_per_k"


@dataclass(frozen=True)
class Contender:
    """A model that may be chosen: its metrics on dev, and how it is measured on test when it is."""

    name: str
    dev: Mapping[str, float]
    measure: Callable[[], Scores]


def best(candidates: Sequence[Contender], metric: str) -> Contender:
    """The candidate with the best dev metric; of equal ones the better at the largest k, then the later."""
    name, largest = (nearest_metric(one, candidates[0].dev) for one in (metric, LARGEST))
    # `max` takes the first of equal ones, which in reverse order is the latest.
    return max(reversed(candidates), key=lambda candidate: (candidate.dev[name], candidate.dev[largest]))


def nearest_metric(metric: str, dev: Mapping[str, float]) -> str:
    """The metric that stands for pass@k on dev: itself, or the largest k below it that dev has samples for.

    >>> nearest_metric("pass@100", {"pass@1": 0.2, "pass@20": 0.6, "unique": 0.3})
    'pass@20'
    """
    wanted = int(metric.removeprefix("pass@"))
    return f"pass@{max(k for k in passes_in(dev) if k <= wanted)}"


@dataclass(frozen=True)
class Choice:
    """What one table shows of an arm: the scores of every test problem, and which model gave them."""

    chosen: str
    scores: Scores


def choices(
    candidates: Sequence[Contender],
    default: Contender,
    metrics: Sequence[str],
    *,
    selects: str = "pass@1",
    measures_all: bool,
) -> dict[str, Choice]:
    """By table what is shown there; `default` is what one has without choosing: mostly the last step."""
    selected = best(candidates, selects)
    tables = {SELECTED: Choice(selected.name, selected.measure())}
    if measures_all:
        tables[LAST] = Choice(default.name, default.measure())
        chosen = {metric: best(candidates, metric) for metric in metrics}
        # Each column from another model: this is what one could reach, no model has all of it.
        scores = {metric: candidate.measure()[metric] for metric, candidate in chosen.items()}
        named = ", ".join(dict.fromkeys(candidate.name for candidate in chosen.values()))
        tables[BEST_PER_K] = Choice(named, scores)
    return tables
