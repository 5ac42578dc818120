"""A solution is a tuple of steps in canonical source: the paper's y = (u_1, ..., u_t).

Identity, prefixes, duplicates and lengths are tuple operations. How text becomes steps is here; how
steps become states is `execution`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from partway.caching import BoundedCache
from partway.errors import SolutionError
from partway.parsing import UNPARSABLE, parse, parse_tree

ANSWER_VARIABLE = "answer"
MAX_CACHED_BYTES = 32 << 20
EXACT_FLOATS = 2**53  # below this a float without a fraction is one integer


@dataclass(frozen=True, slots=True)
class Solution:
    """Steps, each one top-level statement as the unparsed AST spells it.

    >>> Solution.parse("n0=10  # ml\\nanswer = (n0) * 2; print(answer)").steps
    ('n0 = 10', 'answer = n0 * 2')
    """

    steps: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, answer_variable: str = ANSWER_VARIABLE) -> Solution:
        """The solution in `text`, cut after the first step that assigns the answer variable."""
        parsed = parse(text, answer_variable)
        if parsed.error is not None:
            raise SolutionError(
                f"line {parsed.line}, column {parsed.column}: {parsed.error}; expected Python statements",
                parsed.line,
                parsed.column,
            )
        return cls(parsed.steps)

    @property
    def text(self) -> str:
        """The steps joined by newlines, as the model reads and writes them."""
        return "\n".join(self.steps)

    def prefix(self, length: int) -> Solution:
        """The first `length` steps: y_<=i."""
        return Solution(self.steps[:length])

    def startswith(self, prefix: Solution) -> bool:
        """Whether `prefix` is a beginning of this solution, compared step by step."""
        return self.steps[: len(prefix.steps)] == prefix.steps

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        return self.text


EMPTY = Solution(())


def traced_text(prefix: str, completion: str, finished: bool) -> str:
    """What of a sample is run: its prefix and its completion, without the last line if that was cut off.

    A line cut off by length may run all the same: `n0 = 12` was perhaps to become `n0 = 120`.

    >>> traced_text("n0 = 1", "n1 = 2\\nanswer = n0 +", finished=False)
    'n0 = 1\\nn1 = 2\\n'
    """
    kept = completion if finished else completion[: completion.rfind("\n") + 1]
    return f"{prefix}\n{kept}" if prefix else kept


def alpha_form(
    solution: Solution, answer_variable: str = ANSWER_VARIABLE, *, numbers: bool = False
) -> Solution:
    """The solution with its variables renamed v0, v1, ... in order of appearance; the answer keeps its name.

    With `numbers`, equal ones are also spelled alike. A solution nested too deep to be read again is its own
    form.

    >>> alpha_form(Solution.parse("b = 2.0\\na = b * 3\\nanswer = max(a, b)")).steps
    ('v0 = 2.0', 'v1 = v0 * 3', 'answer = max(v1, v0)')
    >>> alpha_form(Solution.parse("b = 2.0\\nanswer = b * 0.50 + 1e300"), numbers=True).steps
    ('v0 = 2', 'answer = v0 * 0.5 + 1e+300')
    """
    try:
        blanks = _blanks_of(solution, numbers)
    except UNPARSABLE:
        return solution
    # Only what a program assigns is its own to rename: `max` and `math` are not.
    assigned = frozenset().union(*(blank.assigned for blank in blanks))
    names = {answer_variable: answer_variable}
    for blank in blanks:
        for name in blank.names:
            if name in assigned and name not in names:
                names[name] = f"v{len(names) - 1}"
    return Solution(tuple(blank.filled(names) for blank in blanks))


@dataclass(frozen=True, slots=True)
class _Blank:
    """A statement as a form to fill in: its source, cut before and behind every name."""

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


def _blanks_of(solution: Solution, numbers: bool) -> list[_Blank]:
    """The statements of a solution, which are mostly its steps: samples share most of these."""
    try:
        return [blank for step in solution.steps for blank in _blanks_in(step, numbers)]
    except UNPARSABLE:  # a step may be a line of a block
        return list(_blanks_in(solution.text, numbers))


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
