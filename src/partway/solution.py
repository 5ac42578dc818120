"""A solution is a tuple of steps in canonical source: the paper's y = (u_1, ..., u_t).

Identity, prefixes, duplicates and lengths are tuple operations. How text becomes steps is here; how
steps become states is `execution`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
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


_alpha_forms = BoundedCache[tuple[Solution, str, bool], Solution](
    MAX_CACHED_BYTES, lambda key, form: 1_000 + 4 * (len(key[0].text) + len(form.text))
)


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
    key = solution, answer_variable, numbers
    form = _alpha_forms.get(key)
    if form is None:
        try:
            form = _respelled(solution, answer_variable, numbers)
        except UNPARSABLE:
            form = solution
        _alpha_forms.put(key, form)
    return form


def _respelled(solution: Solution, answer_variable: str, numbers: bool) -> Solution:
    tree = parse_tree(solution.text)
    nodes = list(_in_order(tree))
    # Only what a program assigns is its own to rename: `max` and `math` are not.
    assigned = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names: dict[str, str] = {answer_variable: answer_variable}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in assigned:
            node.id = names.setdefault(node.id, f"v{len(names) - 1}")
        elif numbers and isinstance(node, ast.Constant) and _is_whole(node.value):
            node.value = int(node.value)  # unparsing has one spelling for every other float
    return Solution(tuple(ast.unparse(statement) for statement in tree.body))


def _is_whole(value: object) -> TypeGuard[float]:
    return isinstance(value, float) and value.is_integer() and abs(value) < EXACT_FLOATS


def _in_order(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes, parents before children, left to right; without recursion, however deep they are nested."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(list(ast.iter_child_nodes(node)))
