"""Arithmetic as written in GSM8K solutions: a small tree, its exact value and its Python spelling."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

MAX_EXPONENT = 64  # fractions are exact, so a large power would take all memory
TOLERANCE = 1e-6
ROUNDINGS: dict[str, Callable[[Fraction], int]] = {"ceil": math.ceil, "floor": math.floor, "round": round}


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written; `percent` if a percent sign followed it, `implied` if it is not in the text."""

    value: Fraction
    percent: bool = False
    implied: bool = False


@dataclass(frozen=True, slots=True)
class Letter:
    """An unknown, named by one letter."""

    name: str


@dataclass(frozen=True, slots=True)
class Reference:
    """The value of an earlier step, by its position among the steps."""

    step: int


@dataclass(frozen=True, slots=True)
class Negative:
    """Unary minus."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Rounded:
    """A value rounded to a whole number; `how` is ceil, floor or round."""

    how: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Operation:
    """Two operands and one of + - * / // **."""

    operator: str
    left: Expression
    right: Expression


Leaf: TypeAlias = Number | Letter | Reference
Expression: TypeAlias = Leaf | Negative | Rounded | Operation


HUNDRED = Number(Fraction(100), implied=True)


def leaves(expression: Expression) -> list[Leaf]:
    """Numbers, letters and references, in the order they are written."""
    if isinstance(expression, Operation):
        return leaves(expression.left) + leaves(expression.right)
    if isinstance(expression, Negative | Rounded):
        return leaves(expression.operand)
    return [expression]


def letters(expression: Expression) -> set[str]:
    """The letters in an expression."""
    return {leaf.name for leaf in leaves(expression) if isinstance(leaf, Letter)}


def has_operation(expression: Expression) -> bool:
    """Whether anything is computed at all: a number, also a negative one, computes nothing."""
    match expression:
        case Operation() | Rounded():
            return True
        case Negative(operand):
            return has_operation(operand)
    return False


def replace_leaves(expression: Expression, leaf: Callable[[Leaf], Expression]) -> Expression:
    """The expression with every leaf replaced, from left to right."""
    match expression:
        case Operation(operator, left, right):
            replaced = replace_leaves(left, leaf)  # before the right side: `leaf` may count
            return Operation(operator, replaced, replace_leaves(right, leaf))
        case Negative(operand):
            return Negative(replace_leaves(operand, leaf))
        case Rounded(how, operand):
            return Rounded(how, replace_leaves(operand, leaf))
        case _:
            return leaf(expression)


def value_of(
    expression: Expression,
    letter_values: Mapping[str, Fraction] | None = None,
    steps: Sequence[Fraction] = (),
) -> Fraction | None:
    """The exact value, or None where there is none (a division by zero, an unknown letter)."""
    match expression:
        case Number(value, percent):
            return value / 100 if percent else value
        case Letter(name):
            return (letter_values or {}).get(name)
        case Reference(step):
            return steps[step]
        case Negative(operand):
            inner = value_of(operand, letter_values, steps)
            return None if inner is None else -inner
        case Rounded(how, operand):
            inner = value_of(operand, letter_values, steps)
            return None if inner is None else rounded(inner, how)
        case Operation(operator, left, right):
            a = value_of(left, letter_values, steps)
            b = value_of(right, letter_values, steps)
            return None if a is None or b is None else _apply(operator, a, b)


def rounded(value: Fraction, how: str) -> Fraction:
    """`value` as math.ceil, math.floor or round give it."""
    return Fraction(ROUNDINGS[how](value))


def close(a: Fraction, b: Fraction) -> bool:
    """Whether two values are the same but for the last decimals an annotator wrote."""
    if a == b:
        return True
    try:
        first, second = float(a), float(b)
    except OverflowError:
        return False
    return abs(first - second) <= TOLERANCE * max(abs(second), 1.0)


def _apply(operator: str, a: Fraction, b: Fraction) -> Fraction | None:
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "*":
        return a * b
    if operator == "**":
        # Whole exponents only: roots are not exact.
        small = b.denominator == 1 and 0 <= b <= MAX_EXPONENT and abs(a) < 10**6
        return Fraction(a ** int(b)) if small else None
    if b == 0:
        return None  # a mistake in the text, not in us: the reading is dropped
    return a / b if operator == "/" else Fraction(a // b)
