"""Columns that the user names: `--columns question=prompt,answer=target`.

A named column takes the place of the one that the row's layout has; a dot goes into an object:
`answer=reward_model.ground_truth`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from partway.data.records import Record
from partway.errors import ConfigError, suggestion
from partway.problems import BadRow

OURS = ("question", "answer", "solution", "context", "id")

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


def with_columns(
    records: Iterator[Record | BadRow], columns: Columns, file: str
) -> Iterator[Record | BadRow]:
    """The rows with the columns that were named; each must have the one of its question."""
    for record in records:
        yield record if isinstance(record, BadRow) else _with_columns(record, columns, file)


def _with_columns(record: Record, columns: Columns, file: str) -> Record | BadRow:
    row, question = record.fields, columns.get("question")
    if question is not None and value_at(row, question) is None:
        names = list(map(str, row))
        reason = f"there is no {question!r} among {', '.join(names)}{suggestion(question, names)}"
        return BadRow(file, record.line, "columns", reason)
    return replace(record, named=columns)


def value_at(row: Any, path: str) -> Any:
    """The value of a column, or inside it."""
    if not isinstance(row, Mapping):
        return None
    if path in row:
        return row[path]
    head, dot, tail = path.partition(".")
    return value_at(row.get(head), tail) if dot else None
