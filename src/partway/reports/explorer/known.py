"""What is known of a problem, and how a solution that is traced for the page compares with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from partway.execution import Programs, Trace
from partway.execution.state_tables import KnownStates, clipped, deviation
from partway.execution.values import canonical
from partway.runs import Row
from partway.solution import Solution

MAX_REMEMBERED = 4096

_exhausted: dict[tuple[str, Programs], Trace] = {}


def traced(texts: Sequence[str], programs: Programs) -> list[Trace]:
    """The traces of solutions as the buffers of a run see them.

    What ran out of time or memory once is not run again while the page is open: a reader would wait again.
    """
    fresh = list(dict.fromkeys(text for text in texts if (text, programs) not in _exhausted))
    found = dict(zip(fresh, programs.trace_all(fresh), strict=True))
    traces = [found.get(text) or _exhausted[text, programs] for text in texts]
    for text, trace in found.items():
        if trace.failure is not None and trace.failure.kind in ("timeout", "memory"):
            _exhausted[text, programs] = trace
    while len(_exhausted) > MAX_REMEMBERED:
        del _exhausted[next(iter(_exhausted))]  # the oldest
    return traces


@dataclass(frozen=True)
class Known:
    """The kept solutions of a problem, the reference or the first one found at the head, and their states."""

    answer: Any
    programs: Programs
    solutions: tuple[Solution, ...]
    states: KnownStates

    def compared(self, trace: Trace) -> Row:
        """A solution beside what is known: its steps and states, where it deviates, how far it is right."""
        trace = self.programs.entered(trace, self.answer)
        row: Row = {
            "steps": self.states.step_rows(trace, self.programs),
            "deviates": deviation(trace.solution, self.solutions[0]) if self.solutions else None,
            "matching": self.programs.longest_known_prefix(trace, self.states.numbers),
            "is_right": self.programs.is_correct(trace, self.answer),
        }
        if trace.has_answer:
            row["answer"] = clipped(spelled(trace.answer))
        if trace.failure is not None:
            failure = trace.failure
            row["failure"] = {"kind": failure.kind, "message": clipped(failure.message), "step": failure.step}
        if trace.failure is None and trace.solution in self.solutions:
            row["same_as"] = self.solutions.index(trace.solution)
        return row


def spelled(value: Any) -> str:
    """A value as a reader expects it: a text without quotation marks, anything else as it is compared."""
    return value if isinstance(value, str) else canonical(value)
