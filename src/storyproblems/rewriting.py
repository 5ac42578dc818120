"""Algebra that people use without thinking: other expressions for the same quantity."""

from __future__ import annotations

from collections.abc import Iterator

from storyproblems.expressions import (
    ONE,
    Expression,
    Number,
    Product,
    Sum,
    add,
    multiply,
    terms,
)

TWO = Number(2)
DECIMALS = {2: 0.5, 4: 0.25, 5: 0.2, 10: 0.1}


def variants(expression: Expression) -> Iterator[Expression]:
    """Every expression one rewriting away, at the root or anywhere inside."""
    match expression:
        case Sum(plus, minus):
            yield from _factored(expression)
            for index, term in enumerate(plus):
                for other in variants(term):
                    yield add((*plus[:index], other, *plus[index + 1 :]), minus)
            for index, term in enumerate(minus):
                for other in variants(term):
                    yield add(plus, (*minus[:index], other, *minus[index + 1 :]))
        case Product(over, under):
            yield from _distributed(expression)
            yield from _doubled(expression)
            yield from _as_decimal(expression)
            for index, factor in enumerate(over):
                for other in variants(factor):
                    yield multiply((*over[:index], other, *over[index + 1 :]), under)


def _distributed(product: Product) -> Iterator[Expression]:
    """(a + b) * c as a * c + b * c, and (a - b) / c as a / c - b / c."""
    for index, factor in enumerate(product.over):
        # (1 + p / 100) * x is left alone: nobody multiplies a 1 out.
        if isinstance(factor, Sum) and not any(isinstance(term, Number) for term in terms(factor)):
            rest = product.over[:index] + product.over[index + 1 :]
            plus, minus = (
                tuple(multiply((term, *rest), product.under) for term in signed)
                for signed in (factor.plus, factor.minus)
            )
            yield add(plus, minus)


def _factored(total: Sum) -> Iterator[Expression]:
    """a * b + a * c as a * (b + c); x + x * 2 as x * 3; x - x * p / 100 as x * (100 - p) / 100."""
    for factor in dict.fromkeys(
        f for term in total.plus for f in _factors(term) if not isinstance(f, Number)
    ):
        plus, minus = (
            tuple(t for t in signed if factor in _factors(t)) for signed in (total.plus, total.minus)
        )
        if len(plus) + len(minus) < 2:
            continue
        inner = _folded(tuple(_without(t, factor) for t in plus), tuple(_without(t, factor) for t in minus))
        others = (
            tuple(t for t in total.plus if t not in plus),
            tuple(t for t in total.minus if t not in minus),
        )
        yield add((multiply((factor, inner)), *others[0]), others[1])
        for over_hundred in _over_common_number(inner):
            yield add((multiply((factor, over_hundred)), *others[0]), others[1])


def _over_common_number(expression: Expression) -> Iterator[Expression]:
    """1 - p / 100 as (100 - p) / 100."""
    match expression:
        case Sum((Number(1),), (Product(over, (Number() as whole,)),)):
            yield multiply((_folded((whole,), (multiply(over),)),), (whole,))
        case Sum((Number(1), Product(over, (Number() as whole,))), ()):
            yield multiply((_folded((whole, multiply(over)), ()),), (whole,))


def _folded(plus: tuple[Expression, ...], minus: tuple[Expression, ...]) -> Expression:
    """The sum of terms; bare numbers such as 1 + 2 are added up on the spot."""
    numbers = [term.value for term in (*plus, *minus) if isinstance(term, Number)]
    if len(numbers) < len(plus) + len(minus):  # not all of them are bare numbers
        return add(plus, minus)
    return Number(sum(numbers[: len(plus)]) - sum(numbers[len(plus) :]))


def _doubled(product: Product) -> Iterator[Expression]:
    """x * 2 as x + x."""
    if TWO in product.over and not product.under:
        once = multiply(_less(product.over, TWO))
        yield add((once, once))


def _as_decimal(product: Product) -> Iterator[Expression]:
    """x / 4 as x * 0.25."""
    for factor in product.under:
        if isinstance(factor, Number) and factor.value in DECIMALS:
            decimal = Number(DECIMALS[int(factor.value)])
            yield multiply((*product.over, decimal), _less(product.under, factor))


def _factors(term: Expression) -> tuple[Expression, ...]:
    return term.over if isinstance(term, Product) else (term,)


def _without(term: Expression, factor: Expression) -> Expression:
    if isinstance(term, Product):
        return multiply(_less(term.over, factor), term.under)
    return ONE


def _less(factors: tuple[Expression, ...], gone: Expression) -> tuple[Expression, ...]:
    index = factors.index(gone)
    return factors[:index] + factors[index + 1 :]
