"""Traces of queries as tables of rows, for whoever shows states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from partway.errors import clipped
from partway.language import Trace
from partway.sql.row_sets import Rows, text_of

MOST_ROWS = 10


def rows_by_step(trace: Trace, against: Trace | None = None) -> Iterator[list[tuple[str, bool]]]:
    """For every executed step its rows, the first ten, and whether each is among those of the reference.

    Of the reference's steps that one is compared with that has most rows in common.
    """
    known = [_counted(table) for table in _tables(against)] if against is not None else []
    for table in _tables(trace):
        own = _counted(table)
        best = max(known, key=lambda other: (own & other).total() / (own | other).total(), default=Counter())
        left = Counter(best)
        shown = []
        for row in table[:MOST_ROWS]:
            text = text_of([row])
            shown.append((clipped(" | ".join(map(_cell, row))), left[text] > 0))
            left[text] -= 1
        others = len(table) - len(shown)
        yield [*shown, (f"and {others:,} more rows", False)] if others else shown or [("no rows", False)]


def _tables(trace: Trace) -> list[Rows]:
    return [value[0] for changes in trace.changes for value in changes.values() if value is not None]


def _counted(table: Rows) -> Counter[str]:
    return Counter(text_of([row]) for row in table) or Counter([""])


def _cell(value: object) -> str:
    return "NULL" if value is None else str(value)
