"""Steps as trees of binary operations, and their text: exactly as `ast.unparse` spells them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from storyproblems.expressions import Expression, Name, Number, Product, Sum, Value


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on two trees; `sign` is one of + - * /."""

    sign: str
    left: Tree
    right: Tree


Tree = Operation | Number | Name

OPERATORS: dict[str, Callable[[Value, Value], Value]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """A tree and the name its value goes by."""

    name: str
    tree: Tree


def leaves(tree: Tree) -> Iterator[Number | Name]:
    """The numbers and names of a tree, from left to right."""
    if isinstance(tree, Operation):
        yield from leaves(tree.left)
        yield from leaves(tree.right)
    else:
        yield tree


def size(tree: Tree) -> int:
    """How many operations a tree holds."""
    return 1 + size(tree.left) + size(tree.right) if isinstance(tree, Operation) else 0


def render(tree: Tree, leaf: Callable[[Number | Name], str], rank: int = 0) -> str:
    """The text of a tree with brackets only where a rank of at least `rank` is needed.

    >>> a, b = Name("a"), Name("b")
    >>> render(Operation("-", a, Operation("+", a, Operation("*", a, b))), lambda leaf: leaf.name)
    'a - (a + a * b)'
    """
    if not isinstance(tree, Operation):
        return leaf(tree)
    own = 1 if tree.sign in "+-" else 2
    # The right operand of equal rank needs brackets: a - (b - c). The left one does not.
    text = f"{render(tree.left, leaf, own)} {tree.sign} {render(tree.right, leaf, own + 1)}"
    return f"({text})" if own < rank else text


def literal(value: Value) -> str:
    """A number as it is written in a step."""
    return str(int(value)) if value == int(value) else str(round(value, 6))


def leaf_text(leaf: Number | Name) -> str:
    """A name as it is, a number as a literal."""
    return leaf.name if isinstance(leaf, Name) else literal(leaf.value)


def spell(expression: Expression) -> str:
    """The formula of an expression, in the order its terms are kept."""
    return render(_plain_tree(expression), leaf_text)


def _plain_tree(expression: Expression) -> Tree:
    match expression:
        case Sum(plus, minus):
            return _chain("+", "-", plus, minus)
        case Product(over, under):
            return _chain("*", "/", over, under)
    return expression


def _chain(join: str, part: str, first: tuple[Expression, ...], second: tuple[Expression, ...]) -> Tree:
    tree = _plain_tree(first[0])
    for sign, terms in ((join, first[1:]), (part, second)):
        for term in terms:
            tree = Operation(sign, tree, _plain_tree(term))
    return tree
