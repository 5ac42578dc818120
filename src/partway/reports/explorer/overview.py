"""What the explorer opens on: how the run went, which problems it gained and lost, three worth looking at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from partway.buffer import Verdict
from partway.reports.averages import pooled_shares, thinned
from partway.reports.explorer.index import Entry, Index
from partway.reports.explorer.run_parts import RunReader
from partway.reports.summaries import Curve, curves_of, passes_in
from partway.runs import Row

MOST_POINTS = 200
MOST_CURVES = 4
MOST_CHANGES = 8
WORTH = 3
HUES = ("blue", "orange", "green", "purple")


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
    kept = {"fcs": "fully correct", "stitched": "stitched", "pcs": "partially correct"}
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
    values = {step: value for step, value in curve.items() if np.isfinite(value)}
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
    entries, here, with_buffer = index.entries, index.columns.here, index.columns.has_buffer
    found = here.fully_correct - np.array([entry.listed.has_reference for entry in entries], np.int64)
    if (entry := _first(entries, found, with_buffer & (found > 0))) is not None:
        ways = entry.standing.kept.fully_correct - entry.listed.has_reference
        yield entry, f"the model found {ways:,} way{'s' * (ways > 1)} of its own to solve it"
    if (entry := _first(entries, here.doubted, here.doubted > 0)) is not None:
        yield entry, "a kept solution seems to be right by luck"
    if (entry := _first(entries, here.stitched, here.stitched > 0)) is not None:
        yield entry, "solutions that nobody sampled were stitched together"
    hard = here.is_solved & (here.passed < here.drawn)
    if (entry := _first(entries, -here.pass_rates(without=1.0), hard)) is not None:
        yield (
            entry,
            f"solved by {entry.standing.score.passed:,} of {entry.standing.score.drawn:,} samples only",
        )
    # Many beginnings though hardly a solution: one solution outweighs a hundred beginnings.
    begun = with_buffer & (here.partially_correct > 0)
    if (entry := _first(entries, here.partially_correct - 100 * found, begun)) is not None:
        count = entry.standing.kept.partially_correct
        yield entry, f"{count:,} right beginning{'s' * (count > 1)} and few whole solutions were found"


def _first(
    entries: Sequence[Entry], order: NDArray[np.float64] | NDArray[np.int64], fits: NDArray[np.bool_]
) -> Entry | None:
    """The fitting entry with the largest number, the first of several."""
    places = np.flatnonzero(fits)
    return entries[int(places[order[places].argmax()])] if len(places) else None


def _link(entry: Entry) -> Row:
    return {"key": entry.key, "id": entry.listed.id, "question": entry.listed.question[:160]}
