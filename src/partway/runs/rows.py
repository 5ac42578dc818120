"""The files a run is kept in: JSON, and JSONL that grows and is read on from a byte or by a row's place."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

from partway.documents import Unreadable, parse_json, parse_yaml, read_object
from partway.errors import RunError
from partway.runs.row_shapes import flaw_of

Row = dict[str, Any]
Stamp = tuple[int, int, int]


class Placed(NamedTuple):
    """A row and the bytes it takes up."""

    start: int
    end: int
    row: Row


def scan(path: Path, start: int = 0) -> Iterator[Placed]:
    """The rows from byte `start` on, none without a file; a line that is still being written is left out."""
    if not path.exists():
        return
    with path.open("rb") as stream:
        stream.seek(start)
        for line in stream:
            if not line.endswith(b"\n"):  # somebody is writing it, or was killed while doing so
                return
            yield Placed(start, start + len(line), _parsed(line, path, start))
            start += len(line)


def read_rows(path: Path) -> Iterator[Row]:
    """All whole rows of a JSONL file, none if there is no such file."""
    return (placed.row for placed in scan(path))


def row_at(path: Path, start: int) -> Row:
    """The row that begins at byte `start`: one row of a large file costs one seek."""
    with path.open("rb") as stream:
        stream.seek(start)
        return _parsed(stream.readline(), path, start)


def append_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add rows to a JSONL file, in one go."""
    # One write: a reader beside us sees whole lines, or the last one unfinished.
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8", newline="\n") as stream:
        stream.write("".join(json_line(row) for row in rows))


def json_line(row: Mapping[str, Any]) -> str:
    """`row` as one line of JSON; numbers that JSON cannot write become null."""
    finite = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }
    return json.dumps(finite, ensure_ascii=False, default=str) + "\n"


def read_json(path: Path) -> Row:
    """The object in a JSON file."""
    return _object(path, parse_json)


def read_yaml(path: Path) -> Row:
    """The names and values in a YAML file."""
    return _object(path, parse_yaml)


def _object(path: Path, parse: Callable[[str], Any]) -> Row:
    try:
        found = read_object(path, parse)
        if flaw := flaw_of(found, path):
            raise Unreadable(flaw)
    except Unreadable as error:
        raise RunError(f"{path}: {error}; was it changed or only half copied?") from None
    return found


def now() -> str:
    """The time as rows have it: ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def numbered(directory: Path, pattern: str) -> list[tuple[int, Path]]:
    """Entries of `directory` like `pattern` by the number in place of its asterisk, in order."""
    shape = re.compile(re.escape(pattern).replace(r"\*", r"(\d+)"))
    # An asterisk takes anything; names such as `checkpoint-8.old` are not meant.
    matches = ((shape.fullmatch(path.name), path) for path in directory.glob(pattern))
    return sorted((int(match[1]), path) for match, path in matches if match)


def stamp(path: Path) -> Stamp | None:
    """What changes whenever the file does; None without a file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size  # a file put in its place has another inode


def synced_size(path: Path) -> int:
    """The size of a file after everything written to it has reached the disk."""
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())
        return os.fstat(stream.fileno()).st_size


def _parsed(line: bytes, path: Path, start: int) -> Row:
    try:
        row = parse_json(line.decode())
        flaw = flaw_of(row, path) if isinstance(row, dict) else "expected a JSON object"
    except UnicodeDecodeError as error:
        flaw = f"not UTF-8 (byte {error.start})"
    except Unreadable as error:
        flaw = str(error)
    if flaw is not None:
        raise RunError(f"{path}, line {_line_number(path, start)}: {flaw}; was it changed?")
    return cast(Row, row)


def _line_number(path: Path, start: int) -> int:
    # Only for a message: rows are found by their bytes, and nobody counts lines otherwise.
    with path.open("rb") as stream:
        return stream.read(start).count(b"\n") + 1
