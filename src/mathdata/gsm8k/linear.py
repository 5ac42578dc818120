"""Linear equations in one letter, solved as annotators do: collect, subtract, divide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from mathdata.gsm8k.expressions import (
    Expression,
    Letter,
    Negative,
    Number,
    Operation,
    letters,
    value_of,
)

ONE = Number(Fraction(1), implied=True)
ZERO = Number(Fraction(0))


@dataclass(frozen=True, slots=True)
class Term:
    """A product with its sign."""

    sign: int
    expression: Expression


Terms = tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class LinearForm:
    """Terms that are multiplied by the letter, and terms that are not."""

    slope: Terms = ()
    constant: Terms = ()

    def __add__(self, other: LinearForm) -> LinearForm:
        return LinearForm(self.slope + other.slope, self.constant + other.constant)

    def __neg__(self) -> LinearForm:
        return LinearForm(negated(self.slope), negated(self.constant))

    def scaled(self, operator: str, factor: Expression, factor_first: bool = False) -> LinearForm:
        """The form times or divided by an expression without the letter."""

        def scale(terms: Terms) -> Terms:
            return tuple(Term(t.sign, _product(operator, t.expression, factor, factor_first)) for t in terms)

        return LinearForm(scale(self.slope), scale(self.constant))


def solve(
    left: Expression, right: Expression, letter: str, known: Mapping[str, Fraction]
) -> Expression | None:
    """The letter's value as an expression of the numbers in the equation, None if it is not linear in it.

    Other letters must be `known`; they stay in the expression.
    """
    # Both sides: 12 / x = 3 and 3 = 12 / x are the same equation.
    left, right = _without_letter_below(left, right, letter)
    right, left = _without_letter_below(right, left, letter)
    first, second = linear_form(left, letter), linear_form(right, letter)
    if first is None or second is None:
        return None
    slope = first.slope + negated(second.slope)
    constant = second.constant + negated(first.constant)
    # A slope of zero leaves the letter open; without a constant the letter is 0, and nothing computes it.
    steepness = value_of(total(slope), known)
    if not steepness or not constant:
        return None
    # So that people would have written it: 3x = 5x - 8 becomes 8 / (5 - 3), without minus signs.
    if steepness < 0:
        slope, constant = negated(slope), negated(constant)
    numerator, denominator = total(constant), total(slope)
    # `x = 5 + 3` is not a division by one.
    return numerator if denominator == ONE else Operation("/", numerator, denominator)


def linear_form(expression: Expression, letter: str) -> LinearForm | None:
    """The expression sorted into what is multiplied by the letter and what is not."""
    if letter not in letters(expression):
        return LinearForm(constant=(Term(1, expression),) if expression != ZERO else ())
    match expression:
        case Letter():
            return LinearForm(slope=(Term(1, ONE),))
        case Negative(operand):
            inner = linear_form(operand, letter)
            return None if inner is None else -inner
        case Operation("+" | "-" as operator, a, b):
            first, second = linear_form(a, letter), linear_form(b, letter)
            if first is None or second is None:
                return None
            return first + (second if operator == "+" else -second)
        case Operation("*", a, b) if letter not in letters(a):
            inner = linear_form(b, letter)
            return None if inner is None else inner.scaled("*", a, factor_first=True)
        case Operation("*" | "/" as operator, a, b) if letter not in letters(b):
            inner = linear_form(a, letter)
            return None if inner is None else inner.scaled(operator, b)
    return None


def total(terms: Terms) -> Expression:
    """The terms as one sum, positive ones first."""
    if not terms:
        return ZERO
    # A sum that begins with a minus sign reads badly; the order of equal signs stays.
    first, *others = sorted(terms, key=lambda term: -term.sign)
    summed: Expression = first.expression if first.sign > 0 else Negative(first.expression)
    for term in others:
        summed = Operation("+" if term.sign > 0 else "-", summed, term.expression)
    return summed


def negated(terms: Terms) -> Terms:
    """The terms with their signs turned."""
    return tuple(Term(-term.sign, term.expression) for term in terms)


def _without_letter_below(side: Expression, other: Expression, letter: str) -> tuple[Expression, Expression]:
    """N / D = R as N = R * D where the letter is in D."""
    if isinstance(side, Operation) and side.operator == "/" and letter in letters(side.right):
        return side.left, Operation("*", other, side.right)
    return side, other


def _product(operator: str, term: Expression, factor: Expression, factor_first: bool) -> Expression:
    if term == ONE and operator == "*":
        return factor
    return Operation(operator, factor, term) if factor_first else Operation(operator, term, factor)
