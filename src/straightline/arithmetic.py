"""The operations that programs may use in this process; the cost of each is bounded before it is paid.

The interpreter computes with integers of up to CHEAP_BITS bits: no operation on them takes more than
microseconds. It leaves larger ones, up to MAX_INTEGER_BITS, to another room, where time is limited. A result
that must exceed even that is a MemoryError at once.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

MAX_INTEGER_BITS = 14_000  # below CPython's limit of 4,300 digits, so that every integer has a text
CHEAP_BITS = 2_048
MAX_ROUND_DIGITS = 4_000
CHEAP_ROUND_DIGITS = 600
MAX_FACTORS = 1_500  # the product of more is too large anyway


Variables: TypeAlias = dict[str, Any]
Run: TypeAlias = Callable[[Variables], Any]  # the value of an expression, or what a statement sets


class NotCovered(Exception):
    """The program leaves the subset: another room has to run it."""


def too_large() -> MemoryError:
    return MemoryError(f"an integer of more than {MAX_INTEGER_BITS} bits")


def bounded(value: Any) -> Any:
    """`value`, unless it is an integer too large to be computed with here."""
    if type(value) is int and value.bit_length() > CHEAP_BITS:
        raise NotCovered
    return value


def _expect(least_bits: int, most_bits: int) -> None:
    """Give up on an integer that will have this many bits, before it is made."""
    if least_bits > MAX_INTEGER_BITS:
        raise too_large()
    if most_bits > CHEAP_BITS:
        raise NotCovered


def _multiply(left: Any, right: Any) -> Any:
    product = left * right
    if type(product) is int and product.bit_length() > CHEAP_BITS:  # as `bounded`, without a call
        raise NotCovered
    return product


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0 and base not in (-1, 0, 1):
        # 2^(bits - 1) <= |base| < 2^bits
        _expect((base.bit_length() - 1) * exponent, base.bit_length() * exponent)
    value = base**exponent
    if isinstance(value, complex):  # of a negative number to a fraction
        raise NotCovered
    return value


def _shift_left(value: Any, by: Any) -> Any:
    if isinstance(value, int) and isinstance(by, int) and value != 0:
        _expect(value.bit_length() + by, value.bit_length() + by)
    return value << by


def _factorial(number: Any) -> Any:
    if isinstance(number, int) and number > 0:
        # n! >= 2^n for n > 3, and n! < n^n
        _expect(number if number <= MAX_FACTORS else MAX_INTEGER_BITS + 1, number * number.bit_length())
    return math.factorial(number)


def _comb(items: Any, chosen: Any) -> Any:
    if isinstance(items, int) and isinstance(chosen, int) and 0 <= chosen <= items:
        fewest = min(chosen, items - chosen)
        # (n/k)^k <= C(n, k) <= (en/k)^k, and C(n, k) >= 2^k for k <= n/2
        ratio = items.bit_length() - fewest.bit_length()
        _expect(max(fewest, fewest * (ratio - 1)), fewest * (ratio + 3))
    return math.comb(items, chosen)


def _perm(items: Any, chosen: Any = None) -> Any:
    count = items if chosen is None else chosen
    if isinstance(items, int) and isinstance(count, int) and 0 <= count <= items:
        # (n-k+1)^k <= P(n, k) <= n^k, and P(n, k) >= k!
        least = count * ((items - count + 1).bit_length() - 1)
        _expect(least if count <= MAX_FACTORS else MAX_INTEGER_BITS + 1, count * items.bit_length())
    return math.perm(items, chosen)


def _lcm(*numbers: Any) -> Any:
    # One number after the other, so that the multiple is looked at before it grows again.
    multiple = math.lcm(*map(bounded, numbers[:1]))
    for number in numbers[1:]:
        multiple = bounded(math.lcm(multiple, bounded(number)))
    return multiple


def _gcd(*numbers: Any) -> Any:
    return math.gcd(*map(bounded, numbers))


def _round(number: Any, digits: Any = None) -> Any:
    # Rounding an integer computes 10**digits.
    if isinstance(digits, int) and abs(digits) > MAX_ROUND_DIGITS:
        raise too_large()
    if isinstance(digits, int) and abs(digits) > CHEAP_ROUND_DIGITS:
        raise NotCovered
    return round(number) if digits is None else round(number, digits)


def _sum(*arguments: Any) -> Any:
    return bounded(sum(*arguments))


BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _multiply,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.LShift: _shift_left,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}

UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}

COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

BUILTINS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "float": float,
    "int": int,
    "max": max,
    "min": min,
    "round": _round,
    "sum": _sum,
}

# Of floats, or giving integers no larger than a float can be: nothing to bound.
_PLAIN = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh degrees erf erfc exp exp2 expm1 fabs floor
fmod gamma hypot isfinite isinf isnan isqrt lgamma log log10 log1p log2 pow radians remainder sin sinh
sqrt tan tanh trunc
"""

MATH_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(math, name) for name in _PLAIN.split()},
    "comb": _comb,
    "factorial": _factorial,
    "gcd": _gcd,
    "lcm": _lcm,
    "perm": _perm,
}

MATH_CONSTANTS: dict[str, float] = {name: getattr(math, name) for name in ("e", "inf", "nan", "pi", "tau")}


# Expressions are functions of the variables, made once and called for every program that has them.


def constant(number: float) -> Run:
    return lambda variables: number


def variable(name: str) -> Run:
    """A variable's value, a KeyError if there is none."""
    return lambda variables: variables[name]


def unary(operator: type[ast.unaryop], operand: Run) -> Run:
    operate = UNARY[operator]
    return lambda variables: operate(operand(variables))


def binary(operator: type[ast.operator], left: Run, right: Run) -> Run:
    if operator not in BINARY:
        raise NotCovered
    operate = BINARY[operator]
    return lambda variables: operate(left(variables), right(variables))


def of_two(operator: type[ast.operator], left: str, right: str) -> Run:
    """The usual step, as `binary` of two variables and faster."""
    operate = BINARY[operator]
    return lambda variables: operate(variables[left], variables[right])
