"""Checkers say whether an answer is right: the paper's isCorrect.

A checker is any callable `(value, answer) -> bool`. A config names one of these, or a function of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

from partway import registry
from partway.errors import ConfigError
from partway.registry import imported, is_refused, refused
from straightline import canonical

Checker: TypeAlias = Callable[[Any, Any], bool]

ABSOLUTE_TOLERANCE = 1e-4
RELATIVE_TOLERANCE = 1e-9


def is_correct(
    answer: Any,
    expected: Any,
    *,
    rel_tol: float = RELATIVE_TOLERANCE,
    abs_tol: float = ABSOLUTE_TOLERANCE,
) -> bool:
    """Numbers are close, values of other kinds are canonically equal; a bool or a string is not a number.

    >>> is_correct(2, 2.00001), is_correct("2", 2), is_correct(True, 1), is_correct([1, 2.0], (1.0, 2))
    (True, False, False, True)
    """
    if not is_number(answer) or not is_number(expected):
        return is_number(answer) == is_number(expected) and canonical(answer) == canonical(expected)
    try:
        return math.isclose(answer, expected, rel_tol=rel_tol, abs_tol=abs_tol)
    except OverflowError:  # integers beyond floats are compared exactly
        return bool(answer == expected)
    except ValueError:  # a signalling NaN
        return False


def is_number(value: Any) -> bool:
    """Whether `value` is a real number: not a bool, not a complex."""
    return isinstance(value, (int, float, Fraction, Decimal)) and not isinstance(value, bool)


def exact(value: Any, answer: Any) -> bool:
    """Whether both are the same value in states, digit by digit: 2 is 2.0, but 0.3333 is not a third.

    >>> exact(2, 2.0), exact(0.3333, 1 / 3), exact([1, 2], (1, 2))
    (True, False, True)
    """
    return canonical(value) == canonical(answer)


def checker_of(checker: str | Checker, rel_tol: float, abs_tol: float) -> Checker:
    """The checker that a setting names; the tolerances are for `default` and `close`, which are the same.

    >>> checker_of("close", 0.01, 0.0)(101, 100), checker_of("default", 1e-9, 1e-4)(101, 100)
    (True, False)
    """
    for name, tolerance in (("checker_rel_tol", rel_tol), ("checker_abs_tol", abs_tol)):
        if not tolerance >= 0:
            raise ConfigError(f"{name} is {tolerance}, expected 0 or more")
    if not isinstance(checker, str):
        return checker
    if checker in ("default", "close"):
        return partial(is_correct, rel_tol=rel_tol, abs_tol=abs_tol)
    if checker == "exact":
        return exact
    if ":" not in checker:
        others = ", ".join(registry.parts("languages"))
        hint = f"; other languages check in ways of their own: {others}" if others else ""
        raise ConfigError(
            f"checker is {checker!r}, expected default, close, exact or package.module:function{hint}"
        )
    if is_refused(checker, "checker"):
        return partial(_unasked, checker)
    found: Checker = imported(checker, "checker")
    if not callable(found):
        raise ConfigError(f"checker is {checker!r}, expected a function (value, answer) -> bool")
    return found


def _unasked(checker: str, value: Any, answer: Any) -> bool:
    """In place of a checker whose code is not run."""
    raise refused(checker, "checker")
