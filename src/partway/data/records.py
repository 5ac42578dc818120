"""Reads rows, each with its line, from JSONL, JSON, CSV, TSV, Parquet and the XML of ASDiv.

A row that cannot be read is a `BadRow` among the records, so that a reader can report all of them; a file
that cannot be read at all is a `ProblemError`.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from partway.errors import ProblemError, one_line
from partway.problems import BadRow


@dataclass(frozen=True, slots=True)
class Record:
    """A row and where it starts: its line in a text file, its number from 1 elsewhere."""

    line: int
    fields: Mapping[str, Any]
    named: Mapping[str, str] = field(default_factory=dict)  # fields of ours, and the columns that hold them


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
        whole = json.loads(text) if text.strip() else []
    except json.JSONDecodeError as error:
        # One object after another: JSONL under another name.
        if error.msg == "Extra data" and text.lstrip().startswith("{"):
            yield from read_jsonl(path)
            return
        raise ProblemError(f"{path}:{error.lineno}: not JSON: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"{path}: not usable JSON: {error}") from None
    rows = whole.get("data") if isinstance(whole, dict) else whole
    if not isinstance(rows, list):
        raise ProblemError(f"{path}: expected a list of objects, or an object with such a list as 'data'")
    yield from number_records(rows, str(path))


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(
        type(value), "a number" if isinstance(value, int | float) else f"a {type(value).__name__}"
    )


def read_cells(path: Path, delimiter: str, kind: str) -> Iterator[Record | BadRow]:
    """Rows of cells between delimiters, below a row of names; an empty cell is left out."""
    # Bytes that are no UTF-8 come through as lone surrogates, so that their row can be named.
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
        reader = csv.reader(stream, delimiter=delimiter, strict=True)
        header: list[str] | None = None
        while True:
            line = reader.line_num + 1  # where the row starts: a quoted cell may hold more lines
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield BadRow(str(path), line, "row", f"not {kind}: {error}")
                continue
            if header is None:
                header = cells
            elif cells and len(cells) != len(header):
                reason = f"{len(cells)} cells, but the header has {len(header)}"
                yield BadRow(str(path), line, "row", reason)
            elif cells:
                yield Record(
                    line, {name: cell for name, cell in zip(header, cells, strict=True) if cell != ""}
                )


def read_xml(path: Path) -> Iterator[Record | BadRow]:
    """Every element `Problem`: its attributes and the texts of what is in it."""
    try:
        problems = ElementTree.parse(path).iter("Problem")
    except ElementTree.ParseError as error:
        raise ProblemError(f"{path}:{error.position[0]}: not XML: {error}") from None
    rows = ({**one.attrib, **{part.tag: part.text for part in one}} for one in problems)
    return number_records(rows, str(path))


def read_parquet(path: Path) -> Iterator[Record | BadRow]:
    """The rows of a Parquet file, a few at a time."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ProblemError(
            f"{path}: reading Parquet needs pyarrow; try: pip install 'partway[datasets]'"
        ) from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            batches = file.iter_batches()
            yield from number_records((row for batch in batches for row in batch.to_pylist()), str(path))
    except (pyarrow.ArrowException, OSError) as error:
        raise ProblemError(f"{path}: not a readable Parquet file: {one_line(error, lines=1)}") from None
