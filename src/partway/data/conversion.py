"""The result of a conversion to problems: the problems, and a table of why rows have no reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from partway.cli.table_style import plain_table
from partway.problem import Problem

MOST_ROWS = 20  # of a table; what is longer is a list
TITLES = {"template_overlap": "Questions of a split (row) whose template another split (column) has too"}


@dataclass(frozen=True, slots=True)
class Reject:
    """A row of the raw data that got no reference: which, why in a few words, and what exactly was wrong."""

    split: str
    row: int  # index in the raw file, from 0
    reason: str
    detail: str
    record: Mapping[str, object]


@dataclass(frozen=True)
class Conversion:
    """Problems per split, the rows without a reference, and tables worth reporting (`notes`)."""

    splits: dict[str, list[Problem]]
    rejects: list[Reject]
    notes: dict[str, object] = field(default_factory=dict)

    def rejects_by_reason(self, split: str | None = None) -> dict[str, int]:
        """How many rows got no reference for which reason, the most frequent reason first."""
        reasons = (reject.reason for reject in self.rejects if split in (None, reject.split))
        return dict(Counter(reasons).most_common())


def counts(conversion: Conversion) -> dict[str, object]:
    """Numbers of problems, of references and of rows without one by reason, and the notes."""
    return {
        "problems": {split: len(problems) for split, problems in conversion.splits.items()},
        "with_reference": {split: _referenced(conversion, split) for split in conversion.splits},
        "without_reference": {split: conversion.rejects_by_reason(split) for split in conversion.splits},
        "notes": conversion.notes,
    }


def show_conversion(conversion: Conversion, out: Path) -> None:
    """One table of what was written, one of what has no reference and why, one for each note."""
    console = Console()
    console.print(_written(conversion, out))
    if conversion.rejects:
        console.print("", _reasons(conversion), sep="\n")
    for name, note in conversion.notes.items():
        if note:
            _show_note(console, TITLES.get(name, name.replace("_", " ")), note)


def _written(conversion: Conversion, out: Path) -> Table:
    table = plain_table("file", "problems", "with a reference")
    for split, problems in conversion.splits.items():
        path = escape(str(out / f"{split}.jsonl"))
        table.add_row(path, f"{len(problems):,}", f"{_referenced(conversion, split):,}")
    return table


def _reasons(conversion: Conversion) -> Table:
    splits = list(dict.fromkeys(reject.split for reject in conversion.rejects))
    table = plain_table("why a row has no reference", *splits)
    by_split = {split: conversion.rejects_by_reason(split) for split in splits}
    for reason in conversion.rejects_by_reason():
        table.add_row(escape(reason), *(f"{by_split[split].get(reason, 0):,}" for split in splits))
    table.add_section()
    table.add_row("all", *(f"{sum(by_split[split].values()):,}" for split in splits))
    return table


def _show_note(console: Console, name: str, note: object) -> None:
    if not isinstance(note, Mapping):
        text = ", ".join(map(str, note)) if isinstance(note, list | tuple) else _shown(note)
        console.print(f"{name}: {text}", markup=False, highlight=False, soft_wrap=True)
        return
    if len(note) > MOST_ROWS:
        counted = ", ".join(f"{key} {_shown(value)}" for key, value in note.items())
        console.print(f"{name}: {counted}", markup=False, highlight=False)
        return
    # A note is a text, a table of numbers, or a table of tables, such as how splits overlap.
    columns = list(dict.fromkeys(key for row in note.values() if isinstance(row, Mapping) for key in row))
    if set(columns) <= set(note):  # what is compared with itself has its columns in the order of its rows
        columns = [key for key in note if key in columns]
    table = plain_table("", *map(str, columns or [""]))
    table.show_header = bool(columns)
    for key, row in note.items():
        cells = [row.get(column, "") for column in columns] if isinstance(row, Mapping) else [row]
        table.add_row(escape(str(key)), *(escape(_shown(cell)) for cell in cells))
    console.print(f"\n{escape(name)}", table, sep="\n", highlight=False)


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _referenced(conversion: Conversion, split: str) -> int:
    return sum(problem.reference is not None for problem in conversion.splits[split])
