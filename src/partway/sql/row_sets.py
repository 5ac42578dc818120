"""Rows as answers and states compare them: multisets of rows, NULL a value, numbers as everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import chain, groupby, permutations, product
from math import factorial, prod
from typing import Any, Literal

from straightline import State, canonical

ColumnOrder = Literal["fixed", "any"]
Rows = Sequence[Sequence[Any]]

MAX_TEXT = 256  # characters of a state; a longer one is stood for by its digest
MAX_MOVED = 100_000  # cells, in all orders of columns that hold the same; more are compared as they stand


def rows_of(answer: Any) -> Rows | None:
    """An answer as rows: a value alone is a table of one, a list of values is a column.

    >>> rows_of(5), rows_of(["a", None]), rows_of([["a", 1]]), rows_of({"a": 1})
    ([[5]], [['a'], [None]], [['a', 1]], None)
    """
    if isinstance(answer, dict):
        return None
    if not isinstance(answer, list | tuple):
        return [[answer]]
    return [row if isinstance(row, list | tuple) else [row] for row in answer]


def text_of(
    rows: Rows, *, ordered: bool = False, as_set: bool = False, column_order: ColumnOrder = "fixed"
) -> str:
    """The text that equal tables share.

    >>> text_of([[2, "a"], [1.0, None]]) == text_of([[1, None], [2.0, "a"]]) != text_of([[1, None]])
    True
    >>> text_of([[1, 2], [3, 4]], column_order="any") == text_of([[4, 3], [2, 1]], column_order="any")
    True
    """
    cells = [tuple(canonical(cell) for cell in row) for row in rows]
    if as_set:
        cells = list(dict.fromkeys(cells))
    orders = _orders(cells) if column_order == "any" and cells else [None]
    return min(_joined(cells, order, ordered) for order in orders)


def _joined(cells: Sequence[Sequence[str]], order: Sequence[int] | None, ordered: bool) -> str:
    texts = [", ".join(row if order is None else [row[place] for place in order]) for row in cells]
    return "; ".join(texts if ordered else sorted(texts))


def _orders(cells: Sequence[Sequence[str]]) -> list[tuple[int, ...]]:
    """The orders of columns to be tried: by what they hold, in any order among those that hold the same.

    Columns that are equal row by row stay side by side.
    """
    equal: dict[tuple[str, ...], list[int]] = {}
    for place, column in enumerate(zip(*cells, strict=True)):
        equal.setdefault(column, []).append(place)
    held = sorted((sorted(column), len(places), places) for column, places in equal.items())
    alike = [[places for *_, places in group] for _, group in groupby(held, key=lambda one: one[:2])]
    if prod(factorial(len(group)) for group in alike) * len(cells) * len(cells[0]) > MAX_MOVED:
        return [tuple(chain.from_iterable(chain.from_iterable(alike)))]
    orders = product(*map(permutations, alike))
    return [tuple(chain.from_iterable(chain.from_iterable(order))) for order in orders]


def state_of(rows: Rows, *, as_set: bool, column_order: ColumnOrder) -> State:
    """The state of a step with these rows; without rows it is empty and never counts as known."""
    text = text_of(rows, as_set=as_set, column_order=column_order)
    if len(text) <= MAX_TEXT:
        return text
    return f"{len(rows)} rows {blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"
