import math
from collections import Counter, OrderedDict, deque
from decimal import Decimal
from fractions import Fraction

import pytest

from straightline.values import MAX_TEXT, canonical, states_of, strict

SAME = [
    (2, 2.0),
    (0, -0.0),
    (3, 2.9999999999999996),
    (0.3, 0.1 + 0.2),
    (1 / 3, 0.33333333334),  # the eleventh digit
    (math.nan, -math.nan),
    (10**23, 1e23),
    (123456789012, 123456789012.0),
    (2**53 - 1, 2.0**53 - 1),  # a float of this size is exact
    (0.5, Fraction(1, 2)),
    (2, Fraction(4, 2)),
    (0.1, Decimal("0.1")),
    (math.inf, Decimal("Infinity")),
    ([1, 2.0], (1.0, 2)),
    ({1, 2}, frozenset([2.0, 1])),
    ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}),
    ({1: 2}, OrderedDict({1.0: 2})),
]

DIFFERENT = [
    (1, True),
    (0, False),
    (0, None),
    (1, "1"),
    ("a", b"a"),
    (10**20, 10**20 + 1),
    (2**61 - 1, 0),
    (-1, -2),
    (0.1, 0.10000001),
    (1 / 3, 0.3333333334),  # the tenth digit
    (1234.567891, 1234.567892),
    (math.inf, -math.inf),
    (math.nan, math.inf),
    ([1, 2], [2, 1]),
    ([1], {1}),
    (set(), {}),
    ("nan", math.nan),
    (["a, b"], ["a", "b"]),
    (1, 1 + 1j),
    (range(2), range(3)),  # of a kind that has no rule of its own
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_values_that_count_as_the_same(one: object, other: object):
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_values_that_differ(one: object, other: object):
    assert canonical(one) != canonical(other)


def test_counters_are_dictionaries():
    assert canonical(Counter("aab")) == canonical({"a": 2, "b": 1})


def test_strict_mode_tells_spellings_apart():
    assert strict(2) != strict(2.0)
    assert strict([1]) != strict((1,))


def test_large_values_are_stood_for_by_a_digest():
    long, other = list(range(1000)), [*range(999), 0]
    assert len(canonical(long)) < MAX_TEXT
    assert canonical(long) != canonical(other)
    assert canonical("x" * 10**6) != canonical("x" * (10**6 - 1))


def test_a_state_is_a_multiset_unless_told_otherwise():
    twice, once, other_order = {"x": (2,), "y": (2,)}, {"x": (2,)}, {"y": (3,), "x": (2,)}
    assert states_of([twice], "multiset") != states_of([once], "multiset")
    assert states_of([twice], "set") == states_of([once], "set")
    assert states_of([other_order], "multiset") == states_of([{"x": (2,), "y": (3,)}], "multiset")


def test_other_kinds_are_compared_by_how_they_are_spelled():
    assert canonical(deque([1])) == canonical(deque([1])) == "deque([1])"


@pytest.mark.parametrize("mode", ["multiset", "set", "strict"])
def test_states_end_where_they_would_be_too_large(mode, monkeypatch):
    monkeypatch.setattr("straightline.values.MAX_STATES_TEXT", 100)
    changes = [{f"x{n}": (n + 10,)} for n in range(20)]
    states = states_of(changes, mode)
    assert sum(map(len, states)) <= 100 < sum(map(len, states)) + len(states[-1]) + 4
    assert states == tuple(", ".join(str(n) for n in range(10, 11 + i)) for i in range(len(states)))
    assert len(states_of([changes[0], *[{}] * 500], mode)) == 501
