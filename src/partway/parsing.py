"""Text to canonical steps: strict about what is a step, forgiving about how text ends."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parsed:
    """The steps of the longest beginning of whole lines that parses, and what is wrong behind it."""

    steps: tuple[str, ...]
    error: str | None = None
    line: int = 0
    column: int = 0


def parse_steps(text: str, answer_variable: str) -> Parsed:
    """The canonical steps of `text`, cut after the first one that assigns the answer variable."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        return Parsed((), error.msg, error.lineno or 0, error.offset or 0)
    steps: list[str] = []
    for node in tree.body:
        steps.append(ast.unparse(node))
        if assigns(node, answer_variable):
            break
    return Parsed(tuple(steps))


def assigns(node: ast.stmt, variable: str) -> bool:
    """Whether a simple statement binds `variable`."""
    match node:
        case ast.Assign(targets=targets):
            pass
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target, value=ast.expr()):
            targets = [target]
        case _:
            return False
    names = (name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))
    return any(name.id == variable for name in names)
