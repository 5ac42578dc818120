"""States as tables: the steps of a solution one under the other, or beside a reference's (Figure 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from partway.errors import SolutionError, clipped, visible
from partway.language import PYTHON, Language, Trace
from partway.language.traces import Changed, values_by_step
from partway.problem import Problem

ABSENT = ("", "", "")
MAX_ROWS = 200  # of a table: laying out many takes minutes
MAX_UNREAD = 2_000  # characters shown of what is no program
MAX_TRIES = 50  # in search of the end of what parses; it nearly always is where the first error is


@dataclass(frozen=True)
class Shown:
    """A traced solution, what to call it, and the end of its text that is no program."""

    name: str
    trace: Trace
    unread: str = ""

    @classmethod
    def of(cls, name: str, text: str, trace: Trace, language: Language) -> Shown:
        """What `text` is, also where it does not parse."""
        is_cut = trace.failure is not None and trace.failure.step >= len(trace.solution)
        if trace.solution.steps and not is_cut:
            return cls(name, trace)
        rest = unread(text, language) if trace.solution.steps else text.strip()
        return cls(name, trace, visible(clipped(rest, MAX_UNREAD)))


def unread(text: str, language: Language = PYTHON) -> str:
    """The lines after the longest beginning that parses.

    >>> unread("n0 = 1\\nn1 = n0 +\\nanswer = 2")
    'n1 = n0 +\\nanswer = 2'
    """
    lines = text.rstrip("\n").split("\n")
    length = len(lines)
    for _ in range(MAX_TRIES):
        try:
            language.parse("\n".join(lines[:length]))
        except SolutionError as error:
            length = min(length - 1, error.line or length)  # nothing after the line of an error can help
        else:
            break
    return "\n".join(lines[length:])


def show(solutions: Sequence[Shown], language: Language = PYTHON) -> None:
    """A table for each solution, side by side as far as they fit."""
    from rich.columns import Columns

    tables = [_table(shown, language) for shown in solutions]
    Console().print(Columns(tables, padding=(1, 2)) if len(tables) > 1 else tables[0])


def show_against(reference: Shown, solutions: Sequence[Shown], language: Language = PYTHON) -> None:
    """Each solution beside the reference, the last state they share in one row."""
    for shown in solutions:
        Console().print(_side_by_side(reference, shown, language))


def _table(shown: Shown, language: Language) -> Table:
    table = Table(title=escape(shown.name), title_justify="left", caption_justify="left")
    table.add_column("", justify="right", style="dim")
    for heading in ("step", "sets", "state"):
        table.add_column(heading, overflow="fold")
    sets = [_sets(changes) for changes in shown.trace.changes]
    rows = _rows(shown, language)
    for number, (step, state, style) in enumerate(rows[:MAX_ROWS], 1):
        cells = (step, sets[number - 1] if number <= len(sets) else "", state)
        table.add_row(str(number), *map(escape, cells), style=style)
    if len(rows) > MAX_ROWS:
        table.add_row("", f"and {len(rows) - MAX_ROWS:,} more steps")
    table.caption = escape(_answer(shown.trace))
    return table


def _side_by_side(reference: Shown, shown: Shown, language: Language) -> Table:
    matching = language.longest_known_prefix(shown.trace, reference.trace.states)
    left, right = _rows(reference, language), _rows(shown, language)
    if matching:  # blank rows bring the state they share into one row
        known = reference.trace.states.index(shown.trace.states[matching - 1]) + 1
        left = _moved(left, known, matching)
        right = _moved(right, matching, known)
        meeting = max(known, matching)
    table = Table(box=None, pad_edge=False, header_style="bold", caption_justify="left")
    for heading in (escape(reference.name), "state after it", "", escape(shown.name), "state after it"):
        table.add_column(heading, overflow="fold", vertical="bottom")
    rows = list(zip_longest(left, right, fillvalue=ABSENT))
    for number, (ours, theirs) in enumerate(rows[:MAX_ROWS], 1):
        is_meeting = bool(matching) and number == meeting
        cells = (*ours[:2], "=" if is_meeting else "", *theirs[:2])
        table.add_row(*map(escape, cells), style="bold green" if is_meeting else theirs[2] or ours[2])
    if len(rows) > MAX_ROWS:
        table.add_row(f"and {len(rows) - MAX_ROWS:,} more steps")
    table.caption = escape(_summary(shown.trace, reference.trace, matching, language))
    return table


def _moved(rows: list[tuple[str, str, str]], own: int, other: int) -> list[tuple[str, str, str]]:
    """Rows whose row `own` comes down to `other`, if that is further down."""
    return [*rows[: own - 1], *[ABSENT] * max(0, other - own), *rows[own - 1 :]]


def _rows(shown: Shown, language: Language) -> list[tuple[str, str, str]]:
    """Step, state and style of each step; a step that did not run has the reason as its state."""
    trace = shown.trace
    states = [f"{{{', '.join(text for text, _ in values)}}}" for values in values_by_step(trace, language)]
    rows = [(step, state, "") for step, state in zip(trace.solution.steps, states, strict=False)]
    # The step that failed has the reason in place of a state; what is after it never ran.
    if trace.failure is None:
        return [(shown.unread, "nothing to run", "red")] if shown.unread else rows
    steps = [*trace.solution.steps[len(states) :], *([shown.unread] if shown.unread else [])] or [""]
    why = f"{trace.failure.kind}: {trace.failure.message}"
    return [*rows, (steps[0], why, "red"), *((step, "not run", "red") for step in steps[1:])]


def _sets(changes: Changed) -> str:
    parts = (
        f"{key} = {clipped(repr(value[0]))}" if value else f"{key} removed" for key, value in changes.items()
    )
    return ", ".join(parts)


def _answer(found: Trace) -> str:
    return f"answer {clipped(repr(found.answer))}" if found.has_answer else "no answer"


def _summary(found: Trace, reference: Trace, matching: int, language: Language) -> str:
    if reference.has_answer and language.is_correct(Problem("", "", reference.answer), found):
        return f"{_answer(found)}: fully correct"
    judgement = f"right up to step {matching}" if matching else "no state in common"
    return f"{_answer(found)}: {judgement}"
