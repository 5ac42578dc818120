"""Formulas between quantities, as sums and products of any number of terms.

`a - b + c` is one sum and `a * p / 100` one product, so that order and grouping are left open: choosing
them is what makes one solution path differ from another (see `paths`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod

Value = int | float


@dataclass(frozen=True, slots=True)
class Number:
    """A number the story does not spell out as a numeral: the 2 of `twice`, the 100 of a percentage."""

    value: Value


@dataclass(frozen=True, slots=True)
class Name:
    """A quantity: a number of the story, or one that another formula defines."""

    name: str


@dataclass(frozen=True, slots=True)
class Sum:
    """The terms in `plus` added, less those in `minus`."""

    plus: tuple[Expression, ...]
    minus: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Product:
    """The factors in `over` multiplied, divided by those in `under`."""

    over: tuple[Expression, ...]
    under: tuple[Expression, ...] = ()


Expression = Number | Name | Sum | Product


@cache
def parse(formula: str) -> Expression:
    """The expression a formula spells.

    >>> parse("a - (b * 2 - c)") == Sum((Name("a"), Name("c")), (Product((Name("b"), Number(2))),))
    True
    """
    return from_syntax(ast.parse(formula, mode="eval").body)


def from_syntax(node: ast.expr) -> Expression:
    """The expression of a Python syntax tree that holds only names, numbers and the four operations."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return Number(value)
        case ast.Name(id=name):
            return Name(name)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return add((from_syntax(left), from_syntax(right)))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return add((from_syntax(left),), (from_syntax(right),))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return multiply((from_syntax(left), from_syntax(right)))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return multiply((from_syntax(left),), (from_syntax(right),))
    raise AssertionError(f"not a formula: {ast.unparse(node)}")


def add(plus: tuple[Expression, ...], minus: tuple[Expression, ...] = ()) -> Expression:
    """The sum of terms, with sums among them opened up."""
    gained: list[Expression] = []
    lost: list[Expression] = []
    # a - (b - c) = a - b + c: what an inner sum takes away is gained where the sum is taken away.
    for same, other, terms in ((gained, lost, plus), (lost, gained, minus)):
        for term in terms:
            if isinstance(term, Sum):
                same.extend(term.plus)
                other.extend(term.minus)
            else:
                same.append(term)
    return gained[0] if len(gained) == 1 and not lost else Sum(tuple(gained), tuple(lost))


def multiply(over: tuple[Expression, ...], under: tuple[Expression, ...] = ()) -> Expression:
    """The product of factors, with products among them opened up and ones left out."""
    above: list[Expression] = []
    below: list[Expression] = []
    for same, other, factors in ((above, below, over), (below, above, under)):
        for factor in factors:
            if isinstance(factor, Product):
                same.extend(factor.over)
                other.extend(factor.under)
            elif factor != ONE:
                same.append(factor)
    if not above:
        above.append(ONE)
    return above[0] if len(above) == 1 and not below else Product(tuple(above), tuple(below))


def terms(expression: Expression) -> tuple[Expression, ...]:
    """The direct parts of an expression; none for a number or a name."""
    match expression:
        case Sum(plus, minus):
            return plus + minus
        case Product(over, under):
            return over + under
    return ()


def nodes(expression: Expression) -> Iterator[Expression]:
    """The expression and everything inside it, outermost first."""
    yield expression
    for term in terms(expression):
        yield from nodes(term)


def names(expression: Expression) -> list[str]:
    """The names in an expression, from left to right."""
    return [node.name for node in nodes(expression) if isinstance(node, Name)]


def operations(expression: Expression) -> int:
    """How many additions, subtractions, multiplications and divisions it takes."""
    # A sum of three terms takes two additions.
    return sum(len(terms(node)) - 1 for node in nodes(expression) if terms(node))


def evaluate(expression: Expression, values: Mapping[str, Value]) -> Value:
    """The value, given those of all names."""
    match expression:
        case Number(value):
            return value
        case Name(name):
            return values[name]
        case Sum(plus, minus):
            return sum(evaluate(term, values) for term in plus) - sum(
                evaluate(term, values) for term in minus
            )
        case Product(over, under):
            above = prod(evaluate(factor, values) for factor in over)
            return above / prod(evaluate(factor, values) for factor in under) if under else above


def substitute(expression: Expression, replacements: Mapping[str, Expression]) -> Expression:
    """The expression with names replaced."""
    match expression:
        case Name(name):
            return replacements.get(name, expression)
        case Sum(plus, minus):
            return add(
                tuple(substitute(term, replacements) for term in plus),
                tuple(substitute(term, replacements) for term in minus),
            )
        case Product(over, under):
            return multiply(
                tuple(substitute(factor, replacements) for factor in over),
                tuple(substitute(factor, replacements) for factor in under),
            )
    return expression


ONE = Number(1)
