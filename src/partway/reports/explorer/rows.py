"""JSONL files read by byte offset, so that one row of a large file costs one seek."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from partway.errors import RunError
from partway.runs import Row

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
            if not line.endswith(b"\n"):
                return
            yield Placed(start, start + len(line), _parsed(line, path, start))
            start += len(line)


def row_at(path: Path, start: int) -> Row:
    """The row that begins at byte `start`."""
    with path.open("rb") as stream:
        stream.seek(start)
        return _parsed(stream.readline(), path, start)


def stamp(path: Path) -> Stamp | None:
    """What changes whenever the file does; None without a file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _parsed(line: bytes, path: Path, start: int) -> Row:
    try:
        row = json.loads(line.decode())
    except ValueError as error:
        raise RunError(f"{path}, byte {start}: not JSON ({error})") from None
    if not isinstance(row, dict):
        raise RunError(f"{path}, byte {start}: expected a JSON object")
    return row
