"""Whether an answer is right: the paper's isCorrect."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

from partway.execution.values import canonical

ABSOLUTE_TOLERANCE = 1e-4
RELATIVE_TOLERANCE = 1e-9


def is_correct(
    answer: Any,
    expected: Any,
    *,
    rel_tol: float = RELATIVE_TOLERANCE,
    abs_tol: float = ABSOLUTE_TOLERANCE,
) -> bool:
    """Numbers are close, values of other kinds are canonically equal; a bool or a string is no number.

    >>> is_correct(2, 2.00001), is_correct("2", 2), is_correct(True, 1), is_correct([1, 2.0], (1.0, 2))
    (True, False, False, True)
    """
    if is_number(answer) and is_number(expected):
        return _close(answer, expected, rel_tol, abs_tol)
    if is_number(answer) or is_number(expected):
        return False
    return canonical(answer) == canonical(expected)


def is_number(value: Any) -> bool:
    """Whether `value` is a real number: not a bool, not a complex."""
    return isinstance(value, (int, float, Fraction, Decimal)) and not isinstance(value, bool)


def _close(answer: Any, expected: Any, rel_tol: float, abs_tol: float) -> bool:
    try:
        return math.isclose(answer, expected, rel_tol=rel_tol, abs_tol=abs_tol)
    except OverflowError:  # integers beyond floats are compared exactly
        return bool(answer == expected)
    except ValueError:  # a signalling NaN
        return False
