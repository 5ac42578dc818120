"""Rename the variables of a program v0, v1, ... in order of appearance, to compare programs up to names."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from straightline.caching import BoundedCache
from straightline.parsing import UNPARSABLE, parse_tree

MAX_CACHED_BYTES = 32 << 20
EXACT_FLOATS = 2**53  # below this a float without a fraction is one integer


def renamed(steps: tuple[str, ...], kept: str = "", *, numbers: bool = False) -> tuple[str, ...]:
    """The steps with their variables renamed; `kept` keeps its name.

    With `numbers`, equal ones are also spelled alike. Steps that are nested too deep to be read again stay as
    they are.

    >>> renamed(("b = 2.0", "a = b * 3", "answer = max(a, b)"), kept="answer")
    ('v0 = 2.0', 'v1 = v0 * 3', 'answer = max(v1, v0)')
    >>> renamed(("b = 2.0", "a = b * 0.5 + 1e300"), numbers=True)
    ('v0 = 2', 'v1 = v0 * 0.5 + 1e+300')
    """
    try:
        blanks = _blanks_of(steps, numbers)
    except UNPARSABLE:
        return steps
    # Only what a program assigns is its own to rename: `max` and `math` are not.
    assigned = frozenset().union(*(blank.assigned for blank in blanks))
    names = {kept: kept}
    for blank in blanks:
        for name in blank.names:
            if name in assigned and name not in names:
                names[name] = f"v{len(names) - 1}"
    return tuple(blank.filled(names) for blank in blanks)


@dataclass(frozen=True, slots=True)
class _Blank:
    """A statement as a form to fill in: its source, cut before and after every name."""

    pieces: tuple[str, ...]  # every second one is a name
    names: tuple[str, ...]  # parents before children, left to right
    assigned: frozenset[str]

    @classmethod
    def of(cls, statement: ast.stmt, numbers: bool) -> _Blank:
        nodes = list(_in_order(statement))
        for node in nodes:
            if numbers and isinstance(node, ast.Constant) and _is_whole(node.value):
                node.value = int(node.value)  # unparsing has one spelling for every other float
        named = [node for node in nodes if isinstance(node, ast.Name)]
        names = tuple(node.id for node in named)
        assigned = frozenset(node.id for node in named if isinstance(node.ctx, ast.Store))
        # Unparsing writes names as they are: with a mark around each they can be found in the source.
        mark = _unused_in(ast.unparse(statement))
        for node in named:
            node.id = f"{mark}{node.id}{mark}"
        return cls(tuple(ast.unparse(statement).split(mark)), names, assigned)

    def filled(self, names: Mapping[str, str]) -> str:
        pieces = list(self.pieces)
        pieces[1::2] = [names.get(name, name) for name in pieces[1::2]]
        return "".join(pieces)


_blanks = BoundedCache[tuple[str, bool], tuple[_Blank, ...]](
    MAX_CACHED_BYTES, lambda key, blanks: 1_000 + 60 * len(key[0])
)


def _blanks_of(steps: tuple[str, ...], numbers: bool) -> list[_Blank]:
    """The statements of a program, which are mostly its steps: programs share most of these."""
    try:
        return [blank for step in steps for blank in _blanks_in(step, numbers)]
    except UNPARSABLE:  # a step may be a line of a block
        return list(_blanks_in("\n".join(steps), numbers))


def _blanks_in(text: str, numbers: bool) -> tuple[_Blank, ...]:
    found = _blanks.get((text, numbers))
    if found is None:
        found = tuple(_Blank.of(statement, numbers) for statement in parse_tree(text).body)
        _blanks.put((text, numbers), found)
    return found


def _unused_in(source: str) -> str:
    """A printable character, which f-strings need, that `source` lacks and no name may hold."""
    characters = map(chr, range(0xA1, sys.maxunicode))
    return next(c for c in characters if c.isprintable() and not f"a{c}".isidentifier() and c not in source)


def _is_whole(value: object) -> TypeGuard[float]:
    return isinstance(value, float) and value.is_integer() and abs(value) < EXACT_FLOATS


def _in_order(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes, parents before children, left to right; without recursion, however deep they are nested."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(list(ast.iter_child_nodes(node)))
