"""Tables of states: the steps of a solution one below the other, or beside a reference (Figure 1)."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from partway.cli.options import counted
from partway.errors import SolutionError, clipped, visible
from partway.language import PYTHON, Language, Trace
from partway.problem import Problem
from straightline import Changed, StateMode, spelled

MAX_VALUES = 100  # of a state that is shown
ABSENT = ("", "", "")
MAX_ROWS = 200  # of a table: laying out many takes minutes
MAX_UNREAD = 2_000  # characters shown of text that is not a program
MAX_TRIES = 50  # in search of the end of what parses; it nearly always is where the first error is


@dataclass(frozen=True)
class Shown:
    """A traced solution, what to call it, and the end of its text that is not a program."""

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
    table = Table(
        title=escape(shown.name), title_justify="left", caption_justify="left", caption_style="italic"
    )
    table.add_column("", justify="right")
    has_sets = rows_by_step(language) is None  # a table is the whole state
    for heading in ("step", "sets", "state") if has_sets else ("step", "rows"):
        table.add_column(heading, overflow="fold")
    sets = [_sets(changes) for changes in shown.trace.changes]
    rows = _rows(shown, language)
    if not rows:
        table.add_row("", "no whole step")
    for number, (step, state, style) in enumerate(rows[:MAX_ROWS], 1):
        own = [sets[number - 1] if number <= len(sets) else ""] if has_sets else []
        cells = (step, *own, state)
        table.add_row(str(number), *map(escape, cells), style=style)
    if len(rows) > MAX_ROWS:
        table.add_row("", f"and {counted(len(rows) - MAX_ROWS, 'more step')}")
    table.caption = escape(_answer(shown.trace))
    return table


def _side_by_side(reference: Shown, shown: Shown, language: Language) -> Table:
    matching = shown.trace.longest_known_prefix(reference.trace.states)
    left, right = _rows(reference, language), _rows(shown, language, reference.trace)
    if matching:  # blank rows bring the state they share into one row
        known = reference.trace.states.index(shown.trace.states[matching - 1]) + 1
        left = _moved(left, known, matching)
        right = _moved(right, matching, known)
        meeting = max(known, matching)
    table = Table(
        box=None, pad_edge=False, header_style="bold", caption_justify="left", caption_style="italic"
    )
    for heading in (escape(reference.name), "state after it", "", escape(shown.name), "state after it"):
        table.add_column(heading, overflow="fold", vertical="top")
    rows = list(zip_longest(left, right, fillvalue=ABSENT))
    for number, (ours, theirs) in enumerate(rows[:MAX_ROWS], 1):
        is_meeting = bool(matching) and number == meeting
        cells = (*ours[:2], "=" if is_meeting else "", *theirs[:2])
        table.add_row(*map(escape, cells), style="bold green" if is_meeting else theirs[2] or ours[2])
    if len(rows) > MAX_ROWS:
        table.add_row(f"and {counted(len(rows) - MAX_ROWS, 'more step')}")
    table.caption = escape(_summary(shown.trace, reference.trace, matching, language))
    return table


def _moved(rows: list[tuple[str, str, str]], own: int, other: int) -> list[tuple[str, str, str]]:
    """Rows whose row `own` comes down to `other`, if that is further down."""
    return [*rows[: own - 1], *[ABSENT] * max(0, other - own), *rows[own - 1 :]]


def _rows(shown: Shown, language: Language, against: Trace | None = None) -> list[tuple[str, str, str]]:
    """Step, state and style of each step; a step that did not run has the reason as its state."""
    trace = shown.trace
    if (by_rows := rows_by_step(language)) is not None:  # a line for each row; '=' marks those of both
        states = ["\n".join(f"{'= ' * same}{row}" for row, same in rows) for rows in by_rows(trace, against)]
    else:
        found = values_by_step(trace, language)
        states = [f"{{{', '.join(text for text, _ in values)}}}" for values in found]
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
    if reference.has_answer and language.is_correct(asked(reference), found):
        return f"{_answer(found)}: fully correct"
    judgement = f"right up to step {matching}" if matching else "no state in common"
    return f"{_answer(found)}: {judgement}"


def asked(reference: Trace) -> Problem:
    """The problem that a reference solves."""
    return Problem("", "", reference.answer, reference.solution)


def state_mode(language: Language) -> StateMode:
    """How a language compares states, if it says so."""
    mode: StateMode = getattr(language, "state", "multiset")
    return mode


ByRows = Callable[[Trace, Trace | None], Iterator[list[tuple[str, bool]]]]


def rows_by_step(language: Language) -> ByRows | None:
    """How a language whose states are tables shows them, None for others.

    Given a trace, and perhaps one to compare with, it has for each step the rows and whether both have each.
    """
    return getattr(language, "rows_by_step", None)


def values_by_step(
    trace: Trace, language: Language, against: Trace | None = None
) -> Iterator[list[tuple[str, bool]]]:
    """For every executed step the values of the state after it, numbers by size, and whether it set each.

    Of a table they are its rows, and whether `against` has each.

    >>> from partway.language import trace
    >>> list(values_by_step(trace("n0 = 10\\nt0 = n0 - 7.0"), PYTHON))
    [[('10', True)], [('3', True), ('10', False)]]
    """
    if (by_rows := rows_by_step(language)) is not None:
        yield from by_rows(trace, against)
        return
    held: dict[str, str] = {}  # names and the texts of their values
    counts: Counter[str] = Counter()
    ordered: list[_Place] = []  # kept in order: to sort anew after every step would take long
    mode = state_mode(language)
    is_set = mode == "set"
    for changes in trace.changes:
        for name, value in changes.items():
            if (old := held.pop(name, None)) is not None:
                counts[old] -= 1
                if not is_set or counts[old] == 0:
                    del ordered[bisect_left(ordered, _place(old, "" if is_set else name))]
            if value is not None:
                text = held[name] = spelled(value[0], mode)
                counts[text] += 1
                if not is_set or counts[text] == 1:
                    insort(ordered, _place(text, "" if is_set else name))
        fresh = {held[name] for name in changes if name in held} if is_set else set()
        # As much as a reader can take in: what a program computes has no bound.
        shown = [(clipped(text), name in changes or text in fresh) for *_, text, name in ordered[:MAX_VALUES]]
        others = len(ordered) - len(shown)
        yield [*shown, (f"and {others:,} more", False)] if others else shown


_Place = tuple[bool, float, str, str]


def _place(text: str, name: str) -> _Place:
    """Where a value stands in a state: numbers by size, then other texts."""
    try:
        size = float(text)
    except ValueError:
        size = math.nan
    return (True, 0.0, text, name) if math.isnan(size) else (False, size, text, name)
