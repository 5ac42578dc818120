"""Right by luck where there is no reference: numbers from nowhere, and what most solutions agree on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from partway.execution import Programs
from partway.execution.variation import Audit
from partway.solution import Solution

MAX_NUMBERS = 200  # characters of the numbers in a reason


def audit_together(
    solutions: Sequence[Solution], question: str, programs: Programs, derived: Sequence[Solution] = ()
) -> Mapping[Solution, Audit]:
    """What right solutions of a question say about each other when its numbers are changed.

    One with a number that stands nowhere in the question is doubted. The others are grouped by what they
    answer under changed numbers: the largest group is believed; if several are, nobody can tell. Solutions
    `derived` from others are judged with them, but are no evidence: they do not count in any group.
    """
    found: dict[Solution, Audit] = {}
    answers: dict[Solution, tuple[Any, ...]] = {}
    for solution in (*solutions, *derived):
        if strange := programs.strange_literals(solution, question):
            found[solution] = Audit("spurious", from_nowhere(strange))
        else:
            answers[solution] = programs.signature(solution, question)
    # Lucky programs rarely agree with each other on other numbers; right ones always do.
    sizes = Counter(answers[solution] for solution in solutions if solution in answers)
    largest = max(sizes.values(), default=0)
    is_clear = list(sizes.values()).count(largest) == 1
    for solution, answer in answers.items():
        found[solution] = _belief(sizes[answer], largest, is_clear)
    return {solution: found[solution] for solution in (*solutions, *derived)}


def _belief(size: int, largest: int, is_clear: bool) -> Audit:
    if size < largest:
        return Audit("spurious", f"{largest} others answer differently for other numbers")
    if largest and not is_clear:
        return Audit("undecided", "as many others answer differently for other numbers")
    if size <= 1:
        return Audit("undecided", "there is neither a reference nor another solution to compare with")
    return Audit("confirmed")


def from_nowhere(strange: Sequence[float]) -> str:
    """Why a solution is doubted that has such numbers."""
    numbers = ", ".join(map(str, strange))
    shown = numbers if len(numbers) <= MAX_NUMBERS else f"{numbers[:MAX_NUMBERS]}..."
    return f"{shown} stands nowhere in the question"
