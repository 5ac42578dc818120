"""Traced solutions side by side as HTML, for notebooks and for the report.

A page that runs scripts paints the same rows itself (`KnownStates`); this is for places where none runs.
Everything that a program wrote or computed is escaped, and characters that are not seen are spelled out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import zip_longest
from typing import TYPE_CHECKING
from unicodedata import category

from partway.cli.options import counted
from partway.cli.trace_tables import rows_by_step, state_mode, values_by_step
from partway.errors import clipped
from partway.language.language import Trace
from partway.language.python import PYTHON
from partway.runs import Row
from partway.solution import Solution
from straightline import Failure, State, spelled

if TYPE_CHECKING:
    from partway.language.language import Language

STYLE_SHEET = files("runreports").joinpath("trace_html.css")
HUES = 7  # how many colours the style sheet has
MAX_STEPS = 200
UNSEEN = {"Cc", "Cf", "Cs", "Co"}  # control, format (such as reorder text), surrogates, private use


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

    def step_rows(
        self, trace: Trace, language: Language, most: int | None = None, against: Trace | None = None
    ) -> list[Row]:
        """The first `most` steps of a solution, each executed one with the state it reaches."""
        rows: list[Row] = []
        values = values_by_step(trace, language, against)
        for index, step in enumerate(trace.solution.steps[:most]):
            row: Row = {"text": step}
            if index < len(trace.states):
                row["values"] = next(values)
                if rows_by_step(language) is not None:
                    row["rows"] = True  # each value is a row of a table, and says whether `against` has it
                if trace.states[index] in self.numbers:
                    row["state"] = self.numbers[trace.states[index]]
            rows.append(row)
        return rows


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


@dataclass(frozen=True)
class Card:
    """A traced solution with what there is to say about it; `look` is reference, right, partial or wrong."""

    trace: Trace
    name: str = ""
    kind: str = ""
    look: str = "reference"
    about: str = ""
    remark: str = ""


def with_style(markup: str) -> str:
    """Markup for notebooks, whose own rules for tables would win over rules without weight."""
    style = STYLE_SHEET.read_text(encoding="utf-8").replace(":where(.partway)", ".partway.partway")
    return f'<div class="partway"><style>{style}</style>{markup}</div>'


def trace_html(trace: Trace) -> str:
    """One solution: each step with the state it reaches."""
    return with_style(cards_html([Card(trace)], PYTHON))


def cards_html(cards: Sequence[Card], language: Language) -> str:
    """Solutions side by side: the same letter is the same state, and all are compared with the first."""
    known = KnownStates.of([card.trace.states for card in cards])
    # A letter links solutions: one alone has none to link.
    marks = known.to_json() if len(cards) > 1 else [{} for _ in known.places]
    shown = "".join(_card(card, cards[0], known, marks, language) for card in cards)
    return f'<div class="cards" role="group" aria-label="Solutions" tabindex="0">{shown}</div>'


def shown_text(text: str) -> str:
    """Text as HTML: escaped, and what cannot be seen or would reorder the rest spelled out.

    >>> shown_text("<b> \\u202e")
    '&lt;b&gt; <span class="escape">U+202E</span>'
    """
    return "".join(
        f'<span class="escape">U+{ord(one):04X}</span>'
        if category(one) in UNSEEN and one not in "\n\t"
        else escape(one)
        for one in text
    )


def _card(card: Card, first: Card, known: KnownStates, marks: Sequence[Row], language: Language) -> str:
    trace = card.trace
    rows = known.step_rows(trace, language, MAX_STEPS, first.trace if card is not first else None)
    differs = deviation(trace.solution, first.trace.solution) if card is not first else None
    body = [_step_row(row, place, place == differs, trace.failure, marks) for place, row in enumerate(rows)]
    if trace.failure is not None and trace.failure.step >= len(trace.solution):
        body.append(_why_row(trace.failure))
    if len(trace.solution) > MAX_STEPS:
        more = counted(len(trace.solution) - MAX_STEPS, "more step")
        body.append(f'<tr><td colspan="3">and {more}</td></tr>')
    names = {"number": "#", "step": "step", "reached": "state"}
    head = "".join(f'<th class="{name}" scope="col">{text}</th>' for name, text in names.items())
    return (
        f'<article class="card">{_header(card)}<table class="steps"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table>{_footer(card, language)}</article>"
    )


def _header(card: Card) -> str:
    # A number at the end of a name is its index.
    name = re.sub(r"(\d+)$", r"<sub>\1</sub>", shown_text(card.name))
    badge = f'<span class="badge is-{card.look}">{shown_text(card.kind)}</span>' if card.kind else ""
    about = f'<p class="meta">{shown_text(card.about)}</p>' if card.about else ""
    return f'<header><span class="name">{name}</span>{badge}</header>{about}' if name or badge else about


def _footer(card: Card, language: Language) -> str:
    if card.remark:
        return f'<footer class="is-{card.look}">{shown_text(card.remark)}</footer>'
    if not card.trace.has_answer:
        return ""
    answer = shown_text(clipped(spelled(card.trace.answer, state_mode(language))))
    return f"<footer>answer <code>{answer}</code></footer>"


def _step_row(row: Row, place: int, differs: bool, failure: Failure | None, marks: Sequence[Row]) -> str:
    if "values" in row:
        state = _state(row, marks)
    else:
        why = failure.message if failure is not None and failure.step == place else "not run"
        state = f'<span class="why">{shown_text(clipped(why))}</span>'
    opening, sign = ('<tr class="deviates">', "◆ ") if differs else ("<tr>", "")
    text = shown_text(clipped(row["text"]))
    return (
        f'{opening}<td class="number">{sign}{place + 1}</td>'
        f'<td class="step"><code dir="ltr">{text}</code></td><td>{state}</td></tr>'
    )


def _why_row(failure: Failure) -> str:
    return (
        f'<tr class="dropped"><td class="number">{failure.step + 1}</td>'
        f'<td colspan="2"><span class="why">{shown_text(clipped(failure.message))}</span></td></tr>'
    )


def _state(row: Row, marks: Sequence[Row]) -> str:
    mark = marks[row["state"]] if "state" in row else {}
    hue = f" hue-{mark['hue']}" if "hue" in mark else ""
    kind = ""
    if "rows" in row:  # a line for each row; '=' marks those of both
        kind = " rows"
        lines = (f"<b>= {shown_text(t)}</b>" if same else shown_text(t) for t, same in row["values"])
        values = "<br>".join(lines)
    else:
        told = (f"<b>{shown_text(t)}</b>" if is_new else shown_text(t) for t, is_new in row["values"])
        values = f"{{{', '.join(told)}}}"
    letter = f'<span class="letter">{mark["letter"]}</span>' if "letter" in mark else ""
    return f'<span class="state{hue}">{letter}<span class="values{kind}" dir="ltr">{values}</span></span>'
