"""Reads and writes the files of a run: JSON, and JSONL that grows and can be read from any byte on.

A file that was half copied, or lacks a key that readers need, is one clear error. SHA-256 identifies files
and problems, on every machine and in every version.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

from partway.errors import RunError
from partway.files import Unreadable, parse_json, parse_yaml, read_object
from partway.problem import Problem

BUFFERS = "buffer.jsonl"  # beside the weights, in a checkpoint and in the final model

Row = dict[str, Any]
SUMMARY_KEYS = ("problems", "samples", "pass1_samples", "ks", "metrics")
# The keys that readers count on, by the name of a file or of its folder.
_KEYS = {
    "samples": ("step", "problem", "prefix", "completion", "count", "finished", "verdict", "log_prob"),
    "problems": ("id", "question", "answer"),
    BUFFERS: ("id", "rules", "max_length", "solutions"),
    "metrics.jsonl": ("step",),
    "timings.jsonl": ("step",),
}


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
            yield Placed(start, start + len(line), parsed_row(line, path, start))
            start += len(line)


def read_rows(path: Path) -> Iterator[Row]:
    """All whole rows of a JSONL file, none if there is no such file."""
    return (placed.row for placed in scan(path))


def append_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add rows to a JSONL file, in one go."""
    # One write: a reader beside us sees whole lines, or the last one unfinished.
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8", newline="\n") as stream:
        stream.write("".join(json_line(row) for row in rows))


def cut_rows(path: Path, length: int, step: int) -> bool:
    """Cut a file of rows to the `length` it had at `step`; False if the file has changed otherwise.

    Then its whole rows up to that step are kept.
    """
    with path.open("rb+") as stream:
        stream.seek(max(0, length - 1))
        if length == 0 or stream.read(1) == b"\n":  # the cut falls on the end of a row
            stream.truncate(length)
            return True
        stream.seek(0)
        kept = [line for line in stream if line.endswith(b"\n") and _is_by(line, step)]
    path.write_bytes(b"".join(kept))
    return False


def _is_by(line: bytes, step: int) -> bool:
    try:
        return bool(parse_json(line.decode())["step"] <= step)
    except (ValueError, LookupError, TypeError):  # not a row
        return False


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
        if flaw := missing_key(found, _keys(path)):
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


def synced_size(path: Path) -> int:
    """The size of a file after everything written to it has reached the disk."""
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())
        return os.fstat(stream.fileno()).st_size


@contextmanager
def as_written(path: Path) -> Iterator[None]:
    """Say which file is broken when something cannot be made of what it holds."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RunError(f"{path}: not as it was written ({error!r}); was it changed?") from None


def missing_key(row: Row, keys: Iterable[str]) -> str | None:
    """Which key a row lacks, None if it has all."""
    return next((f"no {key!r}" for key in keys if key not in row), None)


def _keys(path: Path) -> tuple[str, ...]:
    """What the rows of a file have, by its place in a run."""
    if path.parent.name != "evaluations":
        return _KEYS.get(path.name) or _KEYS.get(path.parent.name, ())
    if path.suffix == SUMMARY:
        return SUMMARY_KEYS
    return ("task_id", "completion", "passed") if path in samples_beside(summary_of(path)) else ()


def parsed_row(line: bytes, path: Path, start: int) -> Row:
    """The row in a line, which begins at a byte of a file."""
    try:
        row = parse_json(line.decode())
        flaw = missing_key(row, _keys(path)) if isinstance(row, dict) else "expected a JSON object"
    except UnicodeDecodeError as error:
        flaw = f"not UTF-8 (byte {error.start})"
    except Unreadable as error:
        flaw = str(error)
    if flaw is not None:
        before = path.read_bytes()[:start].count(b"\n")  # rows are found by their bytes
        raise RunError(f"{path}, line {before + 1}: {flaw}; was it changed?")
    return cast(Row, row)


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def problems_digest(problems: Iterable[Problem]) -> str:
    """The SHA-256 of problems, in order."""
    hasher = hashlib.sha256()
    for problem in problems:
        row = {"id": problem.id, "question": problem.question, "answer": problem.answer}
        row |= {"solution": problem.reference.text} if problem.reference is not None else {}
        row |= {"meta": dict(problem.meta)} if problem.meta else {}
        row |= {"context": problem.context} if problem.context is not None else {}
        hasher.update(json_line(row).encode())
    return hasher.hexdigest()


def key_of(*parts: object) -> str:
    """A short text that stands for `parts`, the same in every process.

    >>> key_of("model", 0.8) == key_of("model", 0.8) != key_of("model", 0.2)
    True
    """
    # Not `hash`, which differs from process to process. A part may hold half of a surrogate pair.
    return hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


SUMMARY, SAMPLES, PASS1, UNFINISHED = ".json", ".jsonl", ".pass1.jsonl", ".partial.jsonl"


def samples_beside(summary: Path) -> tuple[Path, Path]:
    """Where the samples of a summary are, and those drawn apart for the paper's pass@1."""
    return summary.with_suffix(SAMPLES), summary.with_suffix(PASS1)


def summary_of(path: Path) -> Path:
    """The summary of the evaluation that a file belongs to.

    >>> summary_of(Path("test.pass1.jsonl")).name
    'test.json'
    """
    # `.pass1.jsonl` is two suffixes, of which `with_suffix` would take one.
    name = path.name.removesuffix(SAMPLES).removesuffix(".pass1").removesuffix(SUMMARY)
    return path.with_name(name + SUMMARY)
