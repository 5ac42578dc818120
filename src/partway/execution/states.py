"""The states a program goes through, from what each of its steps changed.

All the states of a program together are bounded: they are what its trace holds most of.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from typing import Any

from partway.execution.values import State, StateMode, canonical, strict

MAX_STATES_TEXT = 3_000_000  # characters of all different states of one program
TOO_LARGE = "the states are too large to be kept"


def states_too_large() -> MemoryError:
    """Ends a program whose states exceed MAX_STATES_TEXT."""
    return MemoryError(TOO_LARGE)


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
            if name in texts:
                del in_order[bisect_left(in_order, texts.pop(name))]
            if value is not None:
                texts[name] = spell(value[0])
                insort(in_order, texts[name])
        if changed or not states:
            states.append(", ".join(dict.fromkeys(in_order) if mode == "set" else in_order))
            room -= len(states[-1])
        else:
            states.append(states[-1])
        if room < 0:
            return tuple(states[:-1])
    return tuple(states)
