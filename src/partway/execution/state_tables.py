"""Traces as tables: steps with their states, and a letter and a colour for states that link solutions.

Pages, notebooks and reports all show these rows; only how they are painted differs.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeAlias

from partway.execution.traces import Trace
from partway.execution.values import State
from partway.solution import Solution

if TYPE_CHECKING:
    from partway.execution.programs import Programs

Row: TypeAlias = dict[str, Any]

HUES = 7  # how many colours the style sheet has
MAX_VALUE = 200  # characters of a value
MAX_VALUES = 100  # of a state


@dataclass(frozen=True)
class KnownStates:
    """Every state that a kept solution reaches, in the order in which they are met."""

    numbers: dict[State, int]
    places: list[list[tuple[int, int]]]  # by number: solution and length of every prefix that reaches it

    @classmethod
    def of(cls, solutions: Sequence[Sequence[State]]) -> KnownStates:
        """The states of solutions, each given by its states; the first is the reference."""
        numbers: dict[State, int] = {}
        places: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for solution, states in enumerate(solutions):
            for length, state in enumerate(states, 1):
                if state:
                    places[numbers.setdefault(state, len(numbers))].append((solution, length))
        return cls(numbers, [places[number] for number in range(len(numbers))])

    def to_json(self) -> list[Row]:
        """Places by number; the reference's states and those that solutions share have a letter and a hue."""
        rows: list[Row] = []
        marked = 0
        for places in self.places:
            row: Row = {"places": places}
            if places[0][0] == 0 or len({solution for solution, _ in places}) > 1:
                row |= {"letter": letter(marked), "hue": marked % HUES}
                marked += 1
            rows.append(row)
        return rows

    def step_rows(self, trace: Trace, programs: Programs, most: int | None = None) -> list[Row]:
        """The first `most` steps of a solution, each executed one with the state it reaches."""
        rows: list[Row] = []
        values = values_by_step(trace, programs)
        for index, step in enumerate(trace.solution.steps[:most]):
            row: Row = {"text": step}
            if index < len(trace.states):
                row["values"] = next(values)
                if trace.states[index] in self.numbers:
                    row["state"] = self.numbers[trace.states[index]]
            rows.append(row)
        return rows


def values_by_step(trace: Trace, programs: Programs) -> Iterator[list[tuple[str, bool]]]:
    """For every executed step the values of the state after it, numbers by size, and whether it set each.

    >>> from partway.execution import PYTHON, trace
    >>> list(values_by_step(trace("n0 = 10\\nt0 = n0 - 7.0"), PYTHON))
    [[('10', True)], [('3', True), ('10', False)]]
    """
    held: dict[str, str] = {}  # names and the texts of their values
    counts: Counter[str] = Counter()
    ordered: list[_Place] = []  # kept in order: to sort anew after every step would take long
    is_set = programs.state == "set"
    for changes in trace.changes:
        for name, value in changes.items():
            if (old := held.pop(name, None)) is not None:
                counts[old] -= 1
                if not is_set or counts[old] == 0:
                    del ordered[bisect_left(ordered, _place(old, "" if is_set else name))]
            if value is not None:
                text = held[name] = programs.spell(value[0])
                counts[text] += 1
                if not is_set or counts[text] == 1:
                    insort(ordered, _place(text, "" if is_set else name))
        fresh = {held[name] for name in changes if name in held} if is_set else set()
        # As much as a reader can take in: what a program computes has no bound.
        shown = [(clipped(text), name in changes or text in fresh) for *_, text, name in ordered[:MAX_VALUES]]
        others = len(ordered) - len(shown)
        yield [*shown, (f"and {others:,} more", False)] if others else shown


def clipped(text: str) -> str:
    """The beginning of a text that may be long."""
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}..."


_Place = tuple[bool, float, str, str]


def _place(text: str, name: str) -> _Place:
    """Where a value stands in a state: numbers by size, then other texts."""
    try:
        size = float(text)
    except ValueError:
        size = math.nan
    return (True, 0.0, text, name) if math.isnan(size) else (False, size, text, name)


def deviation(solution: Solution, first: Solution) -> int | None:
    """The index of the first step that is not the one of `first`, None if there is none.

    >>> deviation(Solution(("a = 1", "b = 3")), Solution(("a = 1", "b = 2", "c = 3")))
    1
    """
    pairs = zip_longest(solution.steps, first.steps[: len(solution)])
    return next((index for index, (step, other) in enumerate(pairs) if step != other), None)


def letter(number: int) -> str:
    """A, B, ... Z, then A2, B2 and so on.

    >>> letter(2), letter(26)
    ('C', 'A2')
    """
    turn, place = divmod(number, 26)
    return chr(ord("A") + place) + (str(turn + 1) if turn else "")
