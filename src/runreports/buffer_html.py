"""A buffer as HTML: the problem, and its kept solutions side by side with their states, as in Figure 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from partway.cli.trace_tables import state_mode
from partway.language import Language, Trace, trace_all
from partway.language.language import tests_of
from partway.problem import Problem
from runreports.trace_html import Card, cards_html, shown_text, with_style
from straightline import spelled

if TYPE_CHECKING:
    from partway.buffer.buffer import SolutionBuffer

MAX_SHOWN = 12
LOOKS = {  # by kind: what a card is called, and its colour
    "fully_correct": ("fully correct", "right"),
    "partially_correct": ("partially correct", "partial"),
}


def buffer_html(buffer: SolutionBuffer) -> str:
    """The question, the answer and the kept solutions."""
    problem, language = buffer.problem, buffer.language
    head = f"<p>{shown_text(problem.question)}</p>{_right(problem, language)}"
    kept = list(buffer.found)[:MAX_SHOWN]
    if not kept:
        return with_style(f"{head}<p>No solution is kept yet.</p>")
    traces = trace_all(kept, language, problem)
    left_out = len(buffer) - len(kept)
    more = f"<p>and {left_out:,} more</p>" if left_out else ""
    return with_style(head + cards_html(list(buffer_cards(buffer, traces)), language) + more)


def _right(problem: Problem, language: Language) -> str:
    """What makes a solution right: the answer, or those tests that are not in the question already."""
    tests = unshown_tests(problem, language)
    if tests is None:
        return f"<p>answer <code>{shown_text(spelled(problem.answer, state_mode(language)))}</code></p>"
    return "".join(f"<pre>{shown_text(test)}</pre>" for test in tests)


def buffer_cards(buffer: SolutionBuffer, traces: list[Trace]) -> Iterator[Card]:
    """A card for each of the traced solutions, in the order in which the buffer keeps them."""
    found, doubts = buffer.found, buffer.doubts
    # The keys of LOOKS are the buffer's own names for its kinds.
    looks = {solution: look for kind, look in LOOKS.items() for solution in getattr(buffer, kind)}
    number = 0
    for trace in traces:
        solution = trace.solution
        if solution == buffer.problem.reference:
            yield Card(trace, "y*", "reference", about="given")
            continue
        number += 1
        kind, look = looks[solution]
        remark = f"Right answer by luck: {doubts[solution]}." if solution in doubts else ""
        about = f"found at step {found[solution]:,}"
        yield Card(trace, f"ŷ{number}", kind, "wrong" if remark else look, about, remark)


def unshown_tests(problem: Problem, language: Language) -> list[str] | None:
    """The tests of a problem that its question does not show; None where answers are compared instead."""
    tests = tests_of(problem, language)
    return None if tests is None else [test for test in tests if test not in problem.question]
