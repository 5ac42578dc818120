"""`partway trace`: what each step of a solution does, as in the paper's Figure 1."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from partway.errors import SolutionError
from partway.execution import PYTHON, PythonPrograms, Trace, trace_all
from partway.execution.values import StateMode

if TYPE_CHECKING:
    from rich.table import Table

MAX_BYTES = 1_000_000


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE|-...")
@click.option(
    "--against", metavar="REFERENCE", help="A known solution; mark the last state that it also reaches."
)
@click.option(
    "--state",
    type=click.Choice(["multiset", "set", "strict"]),
    default="multiset",
    help="How values compare.",
)
@click.option(
    "--answer-variable", default="answer", show_default=True, help="The variable that ends a solution."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per solution.")
def command(
    files: tuple[str, ...], against: str | None, state: StateMode, answer_variable: str, as_json: bool
) -> None:
    """Run solutions step by step and show their states.

    \b
    Examples:
      partway trace solution.py
      echo 'n0 = 48; t0 = n0 / 2; answer = n0 + t0' | partway trace -
      partway trace sample1.py sample2.py --against reference.py
    """
    names = [*([against] if against else []), *files]
    traces = trace_all([read(name) for name in names], PythonPrograms(answer_variable, state))
    reference = traces[0] if against else None
    shown = list(zip(names, traces, strict=True))
    if as_json:
        for name, found in shown[1:] if against else shown:
            click.echo(json.dumps(as_object(name, found, reference), ensure_ascii=False))
        return
    show(shown, reference)


def read(name: str) -> str:
    """The text of a file, or of standard input for '-'."""
    if name == "-":
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        with Path(name).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    shown = "standard input" if name == "-" else name
    if len(data) > MAX_BYTES:
        raise SolutionError(f"{shown}: more than {MAX_BYTES:,} bytes; a solution is a short Python program")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SolutionError(f"{shown}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    if not text.strip():
        raise SolutionError(f"{shown}: empty; expected Python statements, one step per line")
    return text


def as_object(name: str, found: Trace, reference: Trace | None) -> dict[str, Any]:
    """A trace as plain JSON values."""
    steps = [
        {
            "step": step,
            "set": {key: repr(value[0]) for key, value in changed.items() if value},
            "state": state,
        }
        for step, changed, state in zip(found.solution.steps, found.changes, found.states, strict=False)
    ]
    result: dict[str, Any] = {
        "file": name,
        "steps": steps,
        "answer": repr(found.answer) if found.has_answer else None,
        "failure": asdict(found.failure) if found.failure else None,
    }
    if reference is not None:
        result["matching_length"] = PYTHON.longest_known_prefix(found, reference.states)
        result["is_correct"] = is_right(found, reference)
    return result


def is_right(found: Trace, reference: Trace) -> bool:
    """Whether a solution answers as the reference does."""
    return reference.has_answer and PYTHON.is_correct(found, reference.answer)


def show(traces: list[tuple[str, Trace]], reference: Trace | None) -> None:
    """Tables side by side, as many as fit."""
    from rich.columns import Columns
    from rich.console import Console

    tables = [_table(name, found, reference) for name, found in traces]
    Console().print(Columns(tables, padding=(1, 2)) if len(tables) > 1 else tables[0])


def _table(name: str, found: Trace, reference: Trace | None) -> Table:
    from rich.markup import escape
    from rich.table import Table

    is_reference = found is reference
    table = Table(title=escape(name) + (" (reference)" if is_reference else ""), title_justify="left")
    table.add_column("", justify="right", style="dim")
    for heading in ("step", "sets", "state"):
        table.add_column(heading, overflow="fold")
    known = () if reference is None or is_reference else reference.states
    matching = PYTHON.longest_known_prefix(found, known)
    for number, step in enumerate(found.solution.steps, 1):
        if number <= len(found.states):
            row, style = _executed_row(found, number, matching, reference)
        else:
            row, style = ("", _why(found) if number == len(found.states) + 1 else "not run"), "red"
        table.add_row(str(number), escape(step), *map(escape, row), style=style)
    if found.failure is not None and found.failure.step == len(found.solution):
        table.add_row(str(found.failure.step + 1), "", "", escape(_why(found)), style="red")
    table.caption = None if is_reference else escape(_summary(found, reference, matching))
    table.caption_justify = "left"
    return table


def _executed_row(
    found: Trace, number: int, matching: int, reference: Trace | None
) -> tuple[tuple[str, str], str]:
    changed = found.changes[number - 1]
    sets = ", ".join(f"{key} = {value[0]!r}" if value else f"{key} removed" for key, value in changed.items())
    state = f"{{{found.states[number - 1]}}}"
    if reference is not None and number == matching:
        state += f"  = step {reference.states.index(found.states[number - 1]) + 1} of the reference"
        return (sets, state), "bold green"
    return (sets, state), ""


def _why(found: Trace) -> str:
    assert found.failure is not None, "only a failed solution has steps that did not run"
    return f"{found.failure.kind}: {found.failure.message}"


def _summary(found: Trace, reference: Trace | None, matching: int) -> str:
    answer = f"answer {found.answer!r}" if found.has_answer else "no answer"
    if reference is None:
        return answer
    if is_right(found, reference):
        return f"{answer}: fully correct"
    return f"{answer}: right up to step {matching}" if matching else f"{answer}: no state in common"
