"""Packing: trees into rows and rows into passes, each within a token budget and with little padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from partway.models.token_tree import TokenTree

Row = tuple[TokenTree, ...]
Rows = tuple[Row, ...]  # what goes through the model at once
Item = TypeVar("Item")

SIMILAR = 0.87  # the shortest row of a pass over its longest: at most 1 / 0.87 = 1.15 times the tokens needed


def longest_row(rows: Rows) -> int:
    """The length of the longest row, to which the others are padded."""
    return max(sum(map(len, row)) for row in rows)


def pack_into_one_row(trees: Sequence[TokenTree], tokens_per_pass: int) -> list[Rows]:
    """Passes of one row each, without padding: each tree, longest first, goes into the first with room."""
    rows: list[list[TokenTree]] = []
    room: list[int] = []
    # First fit, the longest first, takes at most 11/9 of the fewest rows possible (Johnson 1973), and a few.
    for tree in sorted(trees, key=len, reverse=True):
        fitting = next((i for i, left in enumerate(room) if left >= len(tree)), None)
        if fitting is None:
            rows.append([tree])
            room.append(tokens_per_pass - len(tree))
        else:
            rows[fitting].append(tree)
            room[fitting] -= len(tree)
    return [(tuple(row),) for row in rows]


def pack_into_rows(trees: Sequence[TokenTree], tokens_per_pass: int) -> list[Rows]:
    """Passes with a row for each tree, of similar lengths: attention is quadratic in the length of a row."""
    passes: list[list[TokenTree]] = []
    for tree in sorted(trees, key=len, reverse=True):
        longest = len(passes[-1][0]) if passes else 0
        if len(tree) >= SIMILAR * longest and passes and (len(passes[-1]) + 1) * longest <= tokens_per_pass:
            passes[-1].append(tree)
        else:
            passes.append([tree])
    return [tuple((tree,) for tree in trees) for trees in passes]


def pack_chains(problems: Sequence[Sequence[TokenTree]], tokens_per_pass: int) -> list[Rows]:
    """Passes over single-target trees, one to a row; a problem's rows share a pass if the budget allows."""
    passes: list[list[Row]] = []
    for chains in sorted(problems, key=lambda chains: max(map(len, chains)), reverse=True):
        rows = [(chain,) for chain in sorted(chains, key=len, reverse=True)]
        at_once = max(1, tokens_per_pass // len(rows[0][0]))
        # As few parts as possible: a problem in one pass needs no pass to weigh its targets first.
        for part in batched(rows, at_once):
            joined = [*passes[-1], *part] if passes else []
            if joined and len(joined) * max(len(chain) for (chain,) in joined) <= tokens_per_pass:
                passes[-1] = joined
            else:
                passes.append(list(part))
    return [tuple(rows) for rows in passes]


def batched(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Items in stretches of at most `size`."""
    return [items[start : start + size] for start in range(0, len(items), size)]
