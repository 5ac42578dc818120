"""The known states of one problem, and a letter and a colour for those that link solutions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from partway.buffer import Rules
from partway.execution import State, Trace
from partway.execution.values import canonical, strict
from partway.runs import Row

HUES = 7  # how many colours the style sheet has


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

    def step_rows(self, trace: Trace, rules: Rules) -> list[Row]:
        """The steps of a solution, each executed one with the state it reaches."""
        rows: list[Row] = []
        for index, step in enumerate(trace.solution.steps):
            row: Row = {"text": step}
            if index < len(trace.states):
                row["values"] = values_after(trace, index + 1, rules)
                if trace.states[index] in self.numbers:
                    row["state"] = self.numbers[trace.states[index]]
            rows.append(row)
        return rows

    def matching_length(self, trace: Trace) -> int:
        """The length of the longest prefix, its answer step apart, that reaches a known state."""
        longest = len(trace.states) - trace.has_answer
        return next((n for n in range(longest, 0, -1) if trace.states[n - 1] in self.numbers), 0)


def values_after(trace: Trace, length: int, rules: Rules) -> list[tuple[str, bool]]:
    """The values of the state after `length` steps, numbers by size, and whether the last step set each.

    >>> from partway import trace
    >>> values_after(trace("n0 = 10\\nt0 = n0 - 7.0"), 2, Rules())
    [('3', True), ('10', False)]
    """
    spell = strict if rules.state == "strict" else canonical
    changed = trace.changes[length - 1]
    values = [(spell(value), name in changed) for name, value in trace.variables_after(length).items()]
    if rules.state == "set":
        values = [(text, any(new for same, new in values if same == text)) for text in dict(values)]
    return sorted(values, key=_by_size)


def _by_size(value: tuple[str, bool]) -> tuple[bool, float, str]:
    try:
        size = float(value[0])
    except ValueError:
        size = math.nan
    return (True, 0.0, value[0]) if math.isnan(size) else (False, size, value[0])


def letter(number: int) -> str:
    """A, B, ... Z, then A2, B2 and so on.

    >>> letter(2), letter(26)
    ('C', 'A2')
    """
    turn, place = divmod(number, 26)
    return chr(ord("A") + place) + (str(turn + 1) if turn else "")
