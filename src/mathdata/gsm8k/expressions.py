"""Arithmetic as written in GSM8K solutions: a small tree, its exact value, and what it may mean.

Percents, cents and units are the ways in which an expression and its written result may be meant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
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


def readings(
    expression: Expression, unit: str, result_unit: str, result_percent: bool
) -> Iterator[tuple[Expression, str]]:
    """What an expression may mean, and by which rule.

    Percents are points, or hundredths, or one is in points and the others are hundredths. A result in percent
    or cents may be a hundred times what was computed, and an amount may be given in another unit.
    """
    if isinstance(expression, Number):
        yield from _conversions(expression, unit, result_unit)
        return
    rule = "letter" if letters(expression) else "equation"
    percents = percents_in(expression)
    yield points(expression), rule
    if percents:
        yield hundredths(expression), rule
    if result_percent:
        # `20% of 50% = 10%`: one of them is counted in points, as the result is.
        for kept in range(percents):
            yield hundredths(expression, kept), rule
        yield Operation("*", hundredths(expression), HUNDRED), "percent"
    if result_unit in ("cent", "cents", "¢"):
        yield Operation("*", points(expression), HUNDRED), "cents"


def points(expression: Expression) -> Expression:
    """Every percent as a plain number."""

    def drop(leaf: Leaf) -> Expression:
        return Number(leaf.value) if isinstance(leaf, Number) else leaf

    return replace_leaves(expression, drop)


def hundredths(expression: Expression, kept: int = -1) -> Expression:
    """Every percent divided by 100, except the one at position `kept`."""
    seen = iter(range(len(leaves(expression))))  # numbers the percents as they come

    def divide(leaf: Leaf) -> Expression:
        if not isinstance(leaf, Number) or not leaf.percent:
            return leaf
        plain = Number(leaf.value)
        return plain if next(seen) == kept else Operation("/", plain, HUNDRED)

    return replace_leaves(expression, divide)


def percents_in(expression: Expression) -> int:
    """How many percents an expression has."""
    return sum(isinstance(leaf, Number) and leaf.percent for leaf in leaves(expression))


# How many of the smaller unit are one of the larger.
_CONVERSIONS = {
    ("hour", "minute"): 60, ("minute", "second"): 60, ("day", "hour"): 24, ("week", "day"): 7,
    ("year", "month"): 12, ("year", "week"): 52, ("year", "day"): 365, ("foot", "inch"): 12,
    ("yard", "foot"): 3, ("yard", "inch"): 36, ("gallon", "quart"): 4, ("gallon", "pint"): 8,
    ("gallon", "cup"): 16, ("gallon", "ounce"): 128, ("quart", "pint"): 2, ("quart", "cup"): 4,
    ("pint", "cup"): 2, ("cup", "ounce"): 8, ("pound", "ounce"): 16, ("ton", "pound"): 2000,
    ("dollar", "cent"): 100, ("kilometer", "meter"): 1000, ("km", "m"): 1000, ("meter", "centimeter"): 100,
    ("m", "cm"): 100, ("kilogram", "gram"): 1000, ("kg", "g"): 1000, ("liter", "milliliter"): 1000,
    ("l", "ml"): 1000, ("dozen", "piece"): 12,
}  # fmt: skip
_SINGULAR = {"feet": "foot", "inches": "inch"}


def in_other_units(amount: Fraction, unit: str) -> Iterator[Fraction]:
    """An amount in every unit its unit converts to."""
    unit = _singular(unit)
    for (large, small), factor in _CONVERSIONS.items():
        if unit == large:
            yield amount * factor
        elif unit == small:
            yield amount / factor


def _singular(unit: str) -> str:
    return _SINGULAR.get(unit, unit.removesuffix("s"))


def _conversions(amount: Number, unit: str, wanted: str) -> Iterator[tuple[Expression, str]]:
    """20 gallons = 160 pints; but 1 gallon = 8 pints computes nothing."""
    if amount.value == 1:
        return
    unit, wanted = _singular(unit), _singular(wanted)
    if (unit, wanted) in _CONVERSIONS:
        yield Operation("*", amount, Number(Fraction(_CONVERSIONS[unit, wanted]), implied=True)), "units"
    if (wanted, unit) in _CONVERSIONS:
        yield Operation("/", amount, Number(Fraction(_CONVERSIONS[wanted, unit]), implied=True)), "units"
