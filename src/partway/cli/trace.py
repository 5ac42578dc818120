"""`partway trace`: what each step of a solution does, as in the paper's Figure 1."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from partway import registry
from partway.cli.options import AS_JSON, SPOKEN, as_spoken, declared, say_next, speaks, spoken
from partway.errors import ProblemError, SolutionError
from partway.language import PYTHON, Language, Trace, trace_all
from partway.problem import Problem

MAX_BYTES = 1_000_000  # one more is read, to tell what is too long from what just fits


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE|-...")
@declared(
    "--against", metavar="REFERENCE", help="A known solution to show beside it; '=' marks states of both."
)
@speaks
@AS_JSON
def command(files: tuple[str, ...], against: str | None, as_json: bool) -> None:
    """Run programs step by step and show the state after each step.

    \b
    Examples:
      partway trace solution.py
      echo 'n0 = 48; t0 = n0 / 2; answer = n0 + t0' | partway trace -
      partway trace sample1.py sample2.py --against reference.py
      partway trace function.py --language python-written
      partway trace query.sql --database geo.sqlite --against reference.sql
    """
    from partway.cli.trace_tables import Shown, show, show_against

    names = [*([against] if against else []), *files]
    ending = Path(files[0]).suffix.removeprefix(".")
    if ending in registry.parts("languages"):  # a file says what it is written in
        click.get_current_context().meta.setdefault(SPOKEN, {}).setdefault("language", ending)
    language = spoken()
    texts = [read(name) for name in names]
    if (flaw := language.flaw(Problem("", "", None))) is not None:  # a database that is not there
        raise ProblemError(flaw)
    traces = trace_all(texts, language)
    shown = [Shown.of(*one, language) for one in zip(names, texts, traces, strict=True)]
    solutions = shown[1:] if against else shown
    if as_json:
        for one in solutions:
            found = as_object(one.trace, traces[0] if against else None, language)
            click.echo(json.dumps({"file": one.name, **found}, ensure_ascii=False))
    elif against:
        show_against(replace(shown[0], name=f"{against} (reference)"), solutions, language)
    else:
        show(solutions, language)
        say_next(f"partway trace {' '.join(files)} --against REFERENCE{as_spoken()}")


def read(name: str) -> str:
    """The text of a file, or of standard input for '-'."""
    if name == "-":
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        with Path(name).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    shown = "standard input" if name == "-" else name
    if len(data) > MAX_BYTES:
        raise SolutionError(f"{shown}: more than {MAX_BYTES:,} bytes; a solution is a short program")
    try:
        text = data.decode("utf-8-sig")  # some editors begin files with a mark
    except UnicodeDecodeError as error:
        raise SolutionError(f"{shown}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    if not text.strip():
        raise SolutionError(f"{shown}: empty; expected a program, one step per line")
    return text


def as_object(found: Trace, reference: Trace | None = None, language: Language = PYTHON) -> dict[str, Any]:
    """A trace as plain JSON values."""
    from partway.cli.trace_tables import asked

    steps = [
        {
            "step": step,
            "set": {key: repr(value[0]) for key, value in changed.items() if value},
            "state": state,
        }
        for step, changed, state in zip(found.solution.steps, found.changes, found.states, strict=False)
    ]
    result: dict[str, Any] = {
        "steps": steps,
        "answer": repr(found.answer) if found.has_answer else None,
        "failure": asdict(found.failure) if found.failure else None,
    }
    if reference is not None:
        result["matching_length"] = found.longest_known_prefix(reference.states)
        result["is_correct"] = reference.has_answer and language.is_correct(asked(reference), found)
    return result
