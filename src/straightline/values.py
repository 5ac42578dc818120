"""When two values, and two states, are the same: when their canonical texts are equal.

A state is the multiset of the values in scope, names ignored, written as the sorted canonical texts of
its values. Equal states are equal strings, in every process and on every machine. All the states of a program
together are bounded: they are what its trace holds most of.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal

State = str
StateMode = Literal["multiset", "set", "strict"]

MAX_TEXT = 256  # longer canonical texts are stood for by their digest
MAX_STATES_TEXT = 3_000_000  # characters of all different states of one program
TOO_LARGE = "the states are too large to be kept"
EXACT_FLOAT = 2.0**53


def canonical(value: Any) -> str:
    """The text shared by all values that count as the same.

    >>> canonical(2) == canonical(2.0) == canonical(Fraction(4, 2)) != canonical(True)
    True
    >>> canonical(0.1 + 0.2), canonical(-0.0), canonical(10**20 + 1), canonical((1, [2.5]))
    ('0.3', '0', '100000000000000000001', '[1, [2.5]]')
    """
    kind = type(value)
    if kind is int:
        return str(value)
    if kind is float:
        return canonical_float(value)
    text = _canonical_other(value)
    return text if len(text) <= MAX_TEXT else _digest(text)


def strict(value: Any) -> str:
    """The value as Python spells it, for those who need the authors' textual comparison."""
    text = repr(value)
    return text if len(text) <= MAX_TEXT else _digest(text)


def spelled(value: Any, mode: StateMode) -> str:
    """A value as states compare it."""
    return strict(value) if mode == "strict" else canonical(value)


@lru_cache(maxsize=1 << 16)  # the same numbers come again, and spelling one takes longer than computing it
def canonical_float(value: float) -> str:
    """The canonical text of a float."""
    if value.is_integer() and -EXACT_FLOAT < value < EXACT_FLOAT:
        return str(int(value))
    # Ten digits: computed in another order, the last ones may differ.
    text = f"{value:.10g}"
    # Written out, so that 1e20 is the integer of that size.
    return str(int(Decimal(text))) if "e+" in text else text


def _canonical_other(value: Any) -> str:
    match value:
        case list() | tuple():
            return f"[{', '.join(map(canonical, value))}]"
        case set() | frozenset():
            return f"set({', '.join(sorted(map(canonical, value)))})"
        case dict():
            return f"{{{', '.join(sorted(f'{canonical(k)}: {canonical(v)}' for k, v in value.items()))}}}"
        case complex():
            return f"complex({canonical(value.real)}, {canonical(value.imag)})"
        case Fraction():
            return _canonical_fraction(value)
        case Decimal():
            return _canonical_decimal(value)
    return repr(value)  # True, None, texts, and whatever a room has for values without content to compare


def _canonical_decimal(value: Decimal) -> str:
    if value.is_finite():
        return _canonical_fraction(Fraction(value))
    return "nan" if value.is_nan() else canonical(float(value))  # a signalling NaN has no float


def _canonical_fraction(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    try:
        return canonical_float(float(value))
    except OverflowError:  # beyond floats: exact
        return str(value)


def _digest(text: str) -> str:
    content = text.encode("utf-8", "surrogatepass")
    return f"{text[:32]}#{blake2b(content, digest_size=16).hexdigest()}"


def states_of(changes: Sequence[Mapping[str, tuple[Any] | None]], mode: StateMode) -> tuple[State, ...]:
    """The state after each step; fewer than steps if all of them would be too large to be kept.

    A step that changes nothing shares the state before it.

    >>> states_of([{"x": (2,), "y": (1,)}, {}, {"x": None}], "multiset")
    ('1, 2', '1, 2', '1')
    """
    spell = strict if mode == "strict" else canonical
    texts: dict[str, str] = {}
    in_order: list[str] = []
    states: list[State] = []
    room = MAX_STATES_TEXT
    for changed in changes:
        for name, value in changed.items():
            if name in texts:  # of equal texts any may go
                del in_order[bisect_left(in_order, texts.pop(name))]
            if value is not None:
                text = texts[name] = spell(value[0])
                insort(in_order, text)
        if changed or not states:
            states.append(", ".join(dict.fromkeys(in_order) if mode == "set" else in_order))
            room -= len(states[-1])
        else:
            states.append(states[-1])
        if room < 0:
            return tuple(states[:-1])
    return tuple(states)
