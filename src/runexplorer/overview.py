"""The list of a run's problems, and what the page opens on: how the run went and where to begin.

The page has the whole list and searches, filters and orders it itself (`static/search.js`), whether a server
or a folder hands it out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from partway.buffer import Verdict
from partway.cli.options import counted
from partway.runs import Row
from runexplorer.run_parts import Counts, Listed, RunReader, Score, counts_of
from runreports.averages import pooled_shares, thinned
from runreports.summaries import Curve, curves_of, passes_in

STANDING = ("fcs", "pcs", "doubted", "found", "drawn", "passed")  # Counts, then Score
MOST_POINTS = 200
MOST_CURVES = 4
MOST_CHANGES = 8
WORTH = 3
HUES = ("blue", "orange", "green", "purple")


class Standing(NamedTuple):
    """What a run made of a problem."""

    kept: Counts = Counts()
    score: Score = Score()


class Entry(NamedTuple):
    """A problem in the list; `other` is how it stands in the run compared with, if it is there."""

    listed: Listed
    standing: Standing
    other: Standing | None

    @property
    def key(self) -> str:
        """The split and the line of the problem's file: short, and safe in an address."""
        return f"{self.listed.split}/{self.listed.number}"

    @property
    def has_buffer(self) -> bool:
        """Whether solutions of this problem are kept at all."""
        return self.listed.split == "train"

    @property
    def found(self) -> int:
        """How many fully-correct solutions are kept that were not given."""
        return self.standing.kept.fully_correct - self.listed.has_reference if self.has_buffer else 0


@dataclass(frozen=True)
class Index:
    """The problems of a run at one moment."""

    entries: Sequence[Entry]
    version: str

    @cached_property
    def by_key(self) -> dict[str, Entry]:
        return {entry.key: entry for entry in self.entries}

    def to_json(self) -> Row:
        """A short row for each problem: the page has all of them, and there may be a hundred thousand."""
        return {"standing": STANDING, "rows": [_row(entry) for entry in self.entries]}

    def totals(self) -> Row:
        """Sums over the problems."""
        numbers = [(*entry.standing.kept, *entry.standing.score) for entry in self.entries]
        references = sum(entry.has_buffer and entry.listed.has_reference for entry in self.entries)
        sums = {name: sum(row[place] for row in numbers) for place, name in enumerate(STANDING)}
        return {"references": references, **sums}


def _row(entry: Entry) -> list[object]:
    one, here, there = entry
    numbers = [standing and (*standing.kept, *standing.score) for standing in (here, there)]
    return [one.split, one.number, one.id, one.question, *numbers]


def entries_of(reader: RunReader, other: RunReader | None = None) -> list[Entry]:
    """Every problem of a run as it stands now, beside how it stands in another run with the same problems."""
    others: dict[tuple[str, str, str], Standing] = {}
    if other is not None:
        others = {(one.split, one.id, one.question): standing for one, standing in _standings(other)}
    return [
        Entry(one, standing, others.get((one.split, one.id, one.question)))
        for one, standing in _standings(reader)
    ]


def _standings(reader: RunReader) -> list[tuple[Listed, Standing]]:
    listed = reader.listed()
    counts = _counts_now(reader, listed)
    shown = {split: reader.shown_evaluation(split) for split in reader.run.splits()}
    scores = {split: reader.judged(name)[0].scores if name else {} for split, name in shown.items()}
    return [(one, Standing(_kept(one, counts), scores[one.split].get(one.id, Score()))) for one in listed]


def _kept(one: Listed, counts: Mapping[str, Counts]) -> Counts:
    """What is kept for a problem; before anything was saved, its reference."""
    if one.split != "train":
        return Counts()
    return counts.get(one.id, Counts(fully_correct=int(one.has_reference)))


def _counts_now(reader: RunReader, listed: Sequence[Listed]) -> Mapping[str, Counts]:
    """What is kept, with what a run in progress found since it was saved."""
    counts = dict(reader.kept().counts)
    news = reader.problems_with_news()
    for one in listed if news else ():  # after the end of a run nothing is new, and nothing is run
        if one.split == "train" and one.id in news:
            buffer = reader.buffer(one, reader.problem(one))
            counts[one.id] = counts_of(buffer.to_json()["solutions"])
    return counts


def overview_of(reader: RunReader, index: Index) -> Row:
    """Curves, verdicts over time, what training changed, and where to begin."""
    curves = curves_of(reader.run.metrics())
    return {
        "charts": [chart for chart in charts_of(curves) if chart["series"]],
        "verdicts": verdicts_over_time(curves),
        "changes": changes_of(reader, index),
        "worth": worth_looking_at(index),
    }


def charts_of(curves: Mapping[str, Curve]) -> list[Row]:
    """Problems solved, kept solutions and the loss, each over training."""
    ks = passes_in(name.removeprefix("eval_") for name in curves if name.startswith("eval_"))
    # The smallest ks and the largest one: accuracy, and how far the model reaches.
    passes = {f"eval_pass@{k}": f"pass@{k}" for k in [*ks[: MOST_CURVES - 1], *ks[MOST_CURVES - 1 :][-1:]]}
    kept = {"fcs": "fully correct", "pcs": "partially correct"}
    kept_curves = {f"buffer/{kind}_per_problem": name for kind, name in kept.items()}
    return [
        {"title": "Problems solved (dev)", "is_share": True, "series": _series(curves, passes)},
        {"title": "Kept per problem", "is_share": False, "series": _series(curves, kept_curves)},
        {"title": "Loss", "is_share": False, "series": _series(curves, {"loss": "loss"})},
    ]


def _series(curves: Mapping[str, Curve], names: Mapping[str, str]) -> list[Row]:
    found = [(names[key], curves[key]) for key in names if key in curves]
    return [
        {"name": name, "hue": hue, "points": _points(curve)}
        for (name, curve), hue in zip(found, HUES, strict=False)
    ]


def _points(curve: Curve) -> list[tuple[int, float]]:
    """What is logged, not smoothed; of very many points evenly chosen ones. No JSON has NaN."""
    values = {step: value for step, value in curve.items() if math.isfinite(value)}
    return [(step, values[step]) for step in thinned(sorted(values), MOST_POINTS)]


def verdicts_over_time(curves: Mapping[str, Curve]) -> Row | None:
    """The shares of the verdicts in successive stretches of training, and how many samples there were."""
    shares = pooled_shares([curves])
    if not shares.drawn:
        return None
    shown = [verdict for verdict in Verdict if shares.totals[verdict]]
    return {
        "edges": shares.edges,
        "shares": {verdict: shares.shares[verdict] for verdict in shown},
        "counts": {verdict: round(shares.totals[verdict]) for verdict in shown},
    }


def changes_of(reader: RunReader, index: Index) -> Row | None:
    """The dev problems solved at the last evaluation in training and not at the first, and the reverse."""
    names = [name for name in reader.evaluations("dev") if name.isdecimal()]
    if len(names) < 2:
        return None
    before, after = (reader.judged(name)[0].scores for name in (names[0], names[-1]))
    changed: dict[str, list[Entry]] = {"gained": [], "lost": []}
    for entry in index.entries:
        id = entry.listed.id
        if entry.listed.split == "dev" and id in before and id in after:
            if before[id].passed == 0 < after[id].passed:
                changed["gained"].append(entry)
            elif after[id].passed == 0 < before[id].passed:
                changed["lost"].append(entry)
    rows = {way: [_link(entry) for entry in found[:MOST_CHANGES]] for way, found in changed.items()}
    counts = {f"{way}_count": len(found) for way, found in changed.items()}
    return {"first": names[0], "last": names[-1], **rows, **counts}


def worth_looking_at(index: Index) -> list[Row]:
    """Up to three problems, each with the reason why."""
    chosen: dict[str, Row] = {}
    for entry, why in _candidates(index):  # a problem may be chosen for several reasons; the first is told
        chosen.setdefault(entry.key, {**_link(entry), "why": why})
    return list(chosen.values())[:WORTH]


def _candidates(index: Index) -> Iterator[tuple[Entry, str]]:
    """The most instructive problem of each sort, if there is one."""
    entries = index.entries
    for entry in _first(entries, lambda e: e.found):
        yield entry, f"the model found {counted(entry.found, 'way')} of its own to solve it"
    for entry in _first(entries, lambda e: e.standing.kept.doubted):
        yield entry, "a kept solution seems to be right by luck"
    for entry in _first(entries, _hardness):
        score = entry.standing.score
        yield entry, f"solved by {score.passed:,} of {score.drawn:,} samples only"
    # Many beginnings though hardly a solution.
    for entry in _first(entries, lambda e: e.standing.kept.partially_correct / (1 + 100 * e.found)):
        count = entry.standing.kept.partially_correct
        yield entry, f"{counted(count, 'right beginning')} and few whole solutions were found"


def _hardness(entry: Entry) -> float:
    """The share of samples that are wrong where some are right, else 0."""
    drawn, passed = entry.standing.score
    return 1 - passed / drawn if passed else 0.0


def _first(entries: Sequence[Entry], number: Callable[[Entry], float]) -> list[Entry]:
    """The entry with the largest number, the first of several; none if no number is above 0."""
    best = max(entries, key=number, default=None)
    return [best] if best is not None and number(best) > 0 else []


def _link(entry: Entry) -> Row:
    return {"key": entry.key, "id": entry.listed.id, "question": entry.listed.question[:160]}
