"""A solution is a tuple of steps in canonical source: the paper's y = (u_1, ..., u_t).

Identity, prefixes, duplicates and lengths are tuple operations. How text becomes steps is here; how
steps become states is `execution`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache

from partway.errors import SolutionError
from partway.parsing import parse

ANSWER_VARIABLE = "answer"


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


@lru_cache(maxsize=65_536)
def alpha_form(solution: Solution, answer_variable: str = ANSWER_VARIABLE) -> Solution:
    """The solution with its variables renamed v0, v1, ... in order of appearance; the answer keeps its name.

    >>> alpha_form(Solution.parse("b = 2\\na = b * 3\\nanswer = max(a, b)")).steps
    ('v0 = 2', 'v1 = v0 * 3', 'answer = max(v1, v0)')
    """
    tree = ast.parse(solution.text)
    assigned = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names: dict[str, str] = {answer_variable: answer_variable}
    for node in _in_order(tree):
        if isinstance(node, ast.Name) and node.id in assigned:
            node.id = names.setdefault(node.id, f"v{len(names) - 1}")
    return Solution(tuple(ast.unparse(statement) for statement in tree.body))


def _in_order(tree: ast.AST) -> list[ast.AST]:
    """All nodes, parents before children, left to right."""
    return [tree, *(node for child in ast.iter_child_nodes(tree) for node in _in_order(child))]
