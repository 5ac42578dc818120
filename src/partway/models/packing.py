"""Packing: trees into rows and rows into passes, each pass within a token budget and with little padding.

Work is counted in tokens. A pass of R rows of length L costs R * L * (1 + L / `attention_length`), because
attention is quadratic in the row, plus a fixed `overhead` for starting it; the trees, sorted by length, are
cut into passes where the sum of these costs is least. Within a pass, trees share rows where they fit.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from partway.models.token_tree import TokenTree

Row = tuple[TokenTree, ...]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Budget:
    """How large a pass may be, and what makes one dear."""

    tokens_per_pass: int = 2048
    overhead: float = 32.0
    attention_length: float = 2048.0

    def cost(self, rows: int, length: int) -> float:
        return self.overhead + rows * length * (1 + length / self.attention_length)


@dataclass(frozen=True)
class Pass:
    """What goes through the model at once: `layout` says how (see `partway.models.layouts`)."""

    layout: str
    rows: tuple[Row, ...]

    @property
    def trees(self) -> list[TokenTree]:
        return [tree for row in self.rows for tree in row]

    @property
    def length(self) -> int:
        """The length of the longest row, to which the others are padded."""
        return max((sum(map(len, row)) for row in self.rows), default=1)

    @property
    def tokens_computed(self) -> int:
        """Tokens the model reads, padding included."""
        if self.layout != "shared_prompt":
            return len(self.rows) * self.length
        (tree,) = self.trees
        return tree.prompt_length + len(tree.paths) * (max(map(len, tree.paths)) - 1)


def pack_trees(trees: Sequence[TokenTree], budget: Budget) -> list[Pass]:
    """Passes over `trees`, several of which may stand in one row; rows of single chains need no tree mask."""
    ordered = sorted(trees, key=len, reverse=True)
    passes = []
    for start, stop in _cuts([len(tree) for tree in ordered], budget):
        rows = _fill(ordered[start:stop])
        at_once = max(1, budget.tokens_per_pass // len(ordered[start]))
        for part in batched(rows, at_once):
            plain = all(len(row) == 1 and row[0].is_chain for row in part)
            passes.append(Pass("flat" if plain else "tree", tuple(part)))
    return passes


def pack_chains(problems: Sequence[Sequence[TokenTree]], budget: Budget) -> list[Pass]:
    """Passes over single-target trees, one to a row; a problem's rows share a pass if the budget allows."""
    passes: list[list[Row]] = []
    for chains in sorted(problems, key=lambda chains: max(map(len, chains)), reverse=True):
        rows = [(chain,) for chain in sorted(chains, key=len, reverse=True)]
        at_once = max(1, budget.tokens_per_pass // len(rows[0][0]))
        for part in batched(rows, at_once):
            length = len(passes[-1][0][0]) if passes else 0
            if passes and (len(passes[-1]) + len(part)) * length <= budget.tokens_per_pass:
                passes[-1] += part
            else:
                passes.append(list(part))
    return [Pass("flat", tuple(rows)) for rows in passes]


def _cuts(lengths: Sequence[int], budget: Budget) -> list[tuple[int, int]]:
    """Where to cut lengths sorted downwards into passes of least total cost (dynamic programming)."""
    least, cut = [0.0] + [math.inf] * len(lengths), [0] * (len(lengths) + 1)
    for stop in range(1, len(lengths) + 1):
        total = 0
        for start in range(stop - 1, -1, -1):
            total += lengths[start]
            rows = _rows_needed(lengths, start, stop, total)
            if rows * lengths[start] > budget.tokens_per_pass and start < stop - 1:
                break
            cost = least[start] + budget.cost(rows, lengths[start])
            if cost < least[stop]:
                least[stop], cut[stop] = cost, start
    stops = [len(lengths)]
    while stops[-1] > 0:
        stops.append(cut[stops[-1]])
    return [(start, stop) for stop, start in pairwise(stops)][::-1]


def _rows_needed(lengths: Sequence[int], start: int, stop: int, total: int) -> int:
    """A lower bound: what the tokens fill, and one for each length above half a row."""
    above_half = bisect_left(lengths, -lengths[start] / 2, start, stop, key=lambda length: -length) - start
    return max(above_half, math.ceil(total / lengths[start]))


def _fill(trees: Sequence[TokenTree]) -> list[Row]:
    """Trees, longest first, each into the first row that has room; rows are as long as the first tree."""
    rows: list[list[TokenTree]] = []
    room: list[int] = []
    for tree in trees:
        fitting = next((i for i, left in enumerate(room) if left >= len(tree)), None)
        if fitting is None:
            rows.append([tree])
            room.append(len(trees[0]) - len(tree))
        else:
            rows[fitting].append(tree)
            room[fitting] -= len(tree)
    return [tuple(row) for row in rows]


def batched(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Items in stretches of at most `size`."""
    return [items[start : start + size] for start in range(0, len(items), size)]
