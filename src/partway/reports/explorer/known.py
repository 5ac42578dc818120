"""What is known of a problem, and how a traced solution compares with it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from partway.execution import Programs, Trace
from partway.execution.values import canonical
from partway.reports.explorer.states import KnownStates, clipped
from partway.runs import Row
from partway.solution import Solution


@dataclass(frozen=True)
class Known:
    """The kept solutions of a problem, the reference or the first one found at the head, and their states."""

    answer: Any
    programs: Programs
    solutions: tuple[Solution, ...]
    states: KnownStates

    def compared(self, trace: Trace) -> Row:
        """A solution beside what is known: its steps and states, where it deviates, how far it is right."""
        row: Row = {
            "steps": self.states.step_rows(trace, self.programs),
            "deviates": self.deviation(trace.solution),
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

    def deviation(self, solution: Solution) -> int | None:
        """The index of the first step that is not the first solution's, None if there is none."""
        if not self.solutions:
            return None
        pairs = zip_longest(solution.steps, self.solutions[0].steps[: len(solution)])
        return next((index for index, (step, first) in enumerate(pairs) if step != first), None)


def spelled(value: Any) -> str:
    """A value as a reader expects it: a text without quotation marks, anything else as it is compared."""
    return value if isinstance(value, str) else canonical(value)
