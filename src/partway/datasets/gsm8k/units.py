"""Percents, cents and units: the ways an expression and its written result may be meant."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from partway.datasets.gsm8k.expressions import (
    HUNDRED,
    Expression,
    Leaf,
    Number,
    Operation,
    leaves,
    letters,
    replace_leaves,
)


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
