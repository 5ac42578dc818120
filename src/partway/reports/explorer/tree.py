"""Kept solutions as a tree of shared prefixes: every branch is where solutions part."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from partway.runs import Row
from partway.solution import Solution


def tree_of(solutions: Sequence[Solution]) -> list[Row]:
    """The branches below the empty solution; each has the steps up to where its solutions part.

    A branch says which solution it shows (`solution`) and from which step on (`start`), which solution ends
    with it (`leaf`), and the branches that continue it.

    >>> tree_of([Solution(("a = 1", "b = 2")), Solution(("a = 1", "c = 2"))])[0]["length"]
    1
    """
    return _branches([(number, solution.steps) for number, solution in enumerate(solutions)], 0)


def _branches(numbered: Sequence[tuple[int, tuple[str, ...]]], start: int) -> list[Row]:
    going_on = [(number, steps) for number, steps in numbered if len(steps) > start]
    firsts = list(dict.fromkeys(steps[start] for _, steps in going_on))
    in_order = sorted(going_on, key=lambda one: firsts.index(one[1][start]))
    return [_branch(list(group), start) for _, group in groupby(in_order, key=lambda one: one[1][start])]


def _branch(numbered: Sequence[tuple[int, tuple[str, ...]]], start: int) -> Row:
    end = start + 1
    shortest = min(len(steps) for _, steps in numbered)
    while end < shortest and len({steps[end] for _, steps in numbered}) == 1:
        end += 1
    branch: Row = {"solution": numbered[0][0], "start": start, "length": end - start}
    leaves = [number for number, steps in numbered if len(steps) == end]
    if leaves:
        branch["leaf"] = leaves[0]
    return branch | {"branches": _branches(numbered, end)}
