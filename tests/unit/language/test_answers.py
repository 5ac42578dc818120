import math
from decimal import Decimal
from fractions import Fraction

import pytest

from partway import is_correct


@pytest.mark.parametrize(
    ("answer", "expected", "right"),
    [
        (72, 72, True),
        (72.0, 72, True),
        (72.00009, 72, True),
        (72.001, 72, False),
        (1e12 + 100, 1e12, True),
        (1e12 + 2000, 1e12, False),  # the relative tolerance is 1e-9
        (1e6 + 0.01, 1e6, False),
        (Fraction(1, 2), 0.5, True),
        (Decimal("0.5"), 0.5, True),
        (True, 1, False),
        (1, True, False),
        (True, True, True),
        ("72", 72, False),
        ("72", "72", True),
        (None, 72, False),
        (None, None, True),
        (math.nan, math.nan, False),
        (math.inf, math.inf, True),
        (math.inf, 1, False),
        (10**400, 10**400, True),
        (10**400, 10**400 + 1, False),
        (10**400, 1.5, False),
        (1j, 1, False),
        ([1, 2], [1.0, 2.0], True),
        ([1, 2], [2, 1], False),
        ({"a": 1}, {"a": 1}, True),
    ],
)
def test_is_correct(answer: object, expected: object, right: bool):
    assert is_correct(answer, expected) is right
