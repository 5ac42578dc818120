"""Rows with the line each came from, and how they are read from JSONL and JSON.

A row that cannot be read is a `BadRow` among the records, so that a reader can report all of them; a file
that cannot be read at all is a `ProblemError`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partway.errors import ProblemError


@dataclass(frozen=True, slots=True)
class Record:
    """A row and where it starts: its line in a text file, its number from 1 elsewhere."""

    line: int
    fields: Mapping[str, Any]
    item: int | None = None  # its number from 1 in a JSON list, where several may share a line


@dataclass(frozen=True, slots=True)
class BadRow:
    """What is wrong with one row of a file, and in which of its fields."""

    file: str
    line: int
    field: str
    reason: str
    item: int | None = None

    def __str__(self) -> str:
        item = f" item {self.item}:" if self.item is not None else ""
        return f"{self.file}:{self.line}:{item} {self.field}: {self.reason}"


def number_records(rows: Iterable[object], name: str) -> Iterator[Record | BadRow]:
    """Rows that are already in memory, numbered from 1."""
    for number, row in enumerate(rows, 1):
        if isinstance(row, Mapping):
            yield Record(number, row)
        else:
            yield BadRow(name, number, "row", f"expected an object with named fields, found {_kind(row)}")


def read_jsonl(path: Path) -> Iterator[Record | BadRow]:
    with path.open("rb") as stream:  # bytes are split at \n only, never at U+2028
        for line, raw in enumerate(stream, 1):
            try:
                text = raw.decode("utf-8-sig" if line == 1 else "utf-8")
            except UnicodeDecodeError as error:
                yield BadRow(
                    str(path), line, "row", f"not UTF-8: byte {raw[error.start]:#04x} at {error.start}"
                )
                continue
            if text.strip():
                yield _json_record(text, path, line)


def _json_record(text: str, path: Path, line: int) -> Record | BadRow:
    try:
        value = json.loads(text.rstrip())
    except json.JSONDecodeError as error:
        return BadRow(str(path), line, "row", f"not JSON: {error.msg} at column {error.colno}")
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits, or too many brackets
        return BadRow(str(path), line, "row", f"not usable JSON: {error}")
    if not isinstance(value, dict):
        return BadRow(str(path), line, "row", f"expected an object, found {_kind(value)}")
    return Record(line, value)


def read_json(path: Path) -> Iterator[Record | BadRow]:
    """A list of objects, or an object with such a list as `data`; lines of objects are read as JSONL."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemError(
            f"{path}: not UTF-8: byte {error.object[error.start]:#04x} at {error.start}"
        ) from None
    try:
        items = list(_json_items(text, path))
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and text.lstrip().startswith("{"):
            yield from read_jsonl(path)
            return
        raise ProblemError(f"{path}:{error.lineno}: not JSON: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"{path}: not usable JSON: {error}") from None
    for item, (line, value) in enumerate(items, 1):
        if isinstance(value, dict):
            yield Record(line, value, item)
        else:
            yield BadRow(str(path), line, "row", f"expected an object, found {_kind(value)}", item)


def _json_items(text: str, path: Path) -> Iterator[tuple[int, Any]]:
    """The items of the list with the line where each starts."""
    if not text.strip():
        return
    whole = json.loads(text)  # reports what is wrong, and where, better than a walk could
    if isinstance(whole, dict) and isinstance(whole.get("data"), list):
        start = _value_start(text, "data")
    elif isinstance(whole, list):
        start = _skip_space(text, 0)
    else:
        raise ProblemError(f"{path}: expected a list of objects, or an object with such a list as 'data'")
    decoder = json.JSONDecoder()
    line, counted, position = 1, 0, _skip_space(text, start + 1)
    while text[position] != "]":
        line, counted = line + text.count("\n", counted, position), position
        value, end = decoder.raw_decode(text, position)
        yield line, value
        position = _skip_space(text, end)
        if text[position] == ",":
            position = _skip_space(text, position + 1)


def _value_start(text: str, wanted: str) -> int:
    """Where the value of the last key `wanted` of the JSON object `text` starts."""
    decoder = json.JSONDecoder()
    position, found = _skip_space(text, _skip_space(text, 0) + 1), -1
    while text[position] != "}":
        key, end = decoder.raw_decode(text, position)
        start = _skip_space(text, _skip_space(text, end) + 1)
        found = start if key == wanted else found
        position = _skip_space(text, decoder.raw_decode(text, start)[1])
        if text[position] == ",":
            position = _skip_space(text, position + 1)
    return found


def _skip_space(text: str, position: int) -> int:
    while text[position] in " \t\r\n":
        position += 1
    return position


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(
        type(value), "a number" if isinstance(value, int | float) else f"a {type(value).__name__}"
    )
