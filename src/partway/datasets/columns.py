"""Columns by other names: `--columns question=prompt,answer=target`, and what is said when none was found.

Named columns are taken as partway's own; a dot goes into an object: `answer=reward_model.ground_truth`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from partway.datasets.records import BadRow, Record
from partway.errors import ConfigError, suggestion
from partway.problem import Problem

OURS = ("question", "answer", "solution", "id")
MOST_NAMED = 8  # columns in a message

Columns = Mapping[str, str]  # ours, and where it is found


def parse_columns(text: str) -> dict[str, str]:
    """The pairs of `--columns`.

    >>> parse_columns("question=prompt, answer=target")
    {'question': 'prompt', 'answer': 'target'}
    """
    columns = {}
    for pair in text.split(","):
        ours, equals, theirs = (part.strip() for part in pair.partition("="))
        if not equals or ours not in OURS or not theirs:
            raise ConfigError(
                f"columns has {pair.strip()!r}, expected NAME=COLUMN with NAME one of {', '.join(OURS)}, "
                "as in question=prompt,answer=target"
            )
        columns[ours] = theirs
    return columns


def renamed(records: Iterator[Record | BadRow], columns: Columns, file: str) -> Iterator[Record | BadRow]:
    """The rows with our names in place of theirs."""
    for record in records:
        yield record if isinstance(record, BadRow) else _renamed(record, columns, file)


def _renamed(record: Record, columns: Columns, file: str) -> Record | BadRow:
    row = record.fields
    found = {ours: _value(row, theirs) for ours, theirs in columns.items()}
    if missing := [theirs for ours, theirs in columns.items() if ours == "question" and found[ours] is None]:
        names = list(map(str, row))
        reason = f"there is no {missing[0]!r} among {', '.join(names)}{suggestion(missing[0], names)}"
        return BadRow(file, record.line, "columns", reason, record.item)
    # A column that was named keeps no second place among the others; inside an object it stays there.
    taken = {theirs for theirs in columns.values() if theirs in row}
    rest = {name: value for name, value in row.items() if name not in taken and name not in columns}
    return replace(record, fields={**rest, **found})


def _value(row: Any, path: str) -> Any:
    """The value of a column, or inside it."""
    if not isinstance(row, Mapping):
        return None
    if path in row:
        return row[path]
    head, dot, tail = path.partition(".")
    return _value(row.get(head), tail) if dot else None


def without_references(problems: Sequence[Problem]) -> str | None:
    """What to tell whoever wants to learn from problems none of which has a reference; None if one has."""
    if any(problem.reference is not None for problem in problems):
        return None
    unused = list(dict.fromkeys(name for problem in problems for name in problem.meta))
    named = ", ".join(unused[:MOST_NAMED]) + (", ..." if len(unused) > MOST_NAMED else "")
    columns = f"columns not used: {named}" if unused else "there are no other columns"
    return (
        f"NONE of the {len(problems):,} problems has a reference: nothing is learned until the model samples "
        f"a right solution; if a column holds solutions, say so: --columns solution=COLUMN ({columns})"
    )
