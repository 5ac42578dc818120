"""The files a run is kept in: JSON, and JSONL that grows and is read on from a byte or by a row's place.

What is read is checked for the keys and types that readers count on: a file that was changed or half copied
is one clear error. SHA-256 tells files and problems from others, on every machine and in every version.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, cast, get_args

from partway.buffer import Verdict
from partway.buffer.buffer import Kind
from partway.errors import RunError
from partway.files import Unreadable, parse_json, parse_yaml, read_object
from partway.problem import Problem

BUFFERS = "buffer.jsonl"  # beside the weights, in a checkpoint and in the final model

Row = dict[str, Any]
Stamp = tuple[int, int, int]

# A shape is a type, a set of texts, a list of one shape, the shapes of keys, or any of several shapes. `key?`
# may be missing, and `*` stands for every key.
NUMBER, TEXT_OR_NULL, INTEGER_OR_NULL = (float, int), (str, NoneType), (int, NoneType)
SUMMARY_SHAPE: Row = {
    **dict.fromkeys(("problems", "samples", "pass1_samples"), int),
    "ks": [int],
    "language?": str,
    "language_args?": dict,
    "metrics": {"*": {"value": NUMBER, "low": NUMBER, "high": NUMBER}},
}
_JUDGED: Row = {
    "task_id": (str, int),
    "completion": str,
    "passed": bool,
    "count?": int,
    "failed_step?": INTEGER_OR_NULL,
    **dict.fromkeys(("answer?", "result?", "failure?"), TEXT_OR_NULL),
}
_KEPT: Row = {"kind": frozenset(get_args(Kind)), "steps": [str], "states": [str], "found": int}
_DATA: Row = {"problems?": int}
_SHAPES: Row = {
    "samples": {
        "step": int,
        "problem": str,
        "prefix": str,
        "completion": str,
        "count": int,
        "finished": bool,
        "verdict": frozenset(Verdict),
        "log_prob": (*NUMBER, NoneType),
        "weights?": INTEGER_OR_NULL,
        "tokens?": [int],
    },
    "problems": {
        "id": (str, int),
        "question": str,
        "answer": object,
        "solution?": TEXT_OR_NULL,
        "meta?": (dict, NoneType),
    },
    BUFFERS: {
        "id": str,
        "rules": dict,
        "max_length": INTEGER_OR_NULL,
        "usual_length?": INTEGER_OR_NULL,
        "solutions": [_KEPT],
    },
    "metrics.jsonl": {"step": int, "final_step?": int},
    "timings.jsonl": {"step": int, "*": NUMBER},
    "environment.json": {
        **dict.fromkeys(("seed?", "processes?", "problems_per_step?"), int),
        "resumed?": [dict],
        "data?": {"train?": _DATA, "dev?": (_DATA, NoneType)},
        "model?": {"name?": TEXT_OR_NULL, "parameters?": int},
    },
    "config.yaml": {
        **dict.fromkeys(("seed?", "length_tolerance?"), int),
        **dict.fromkeys(("length_limit?", "max_solutions_per_problem?"), INTEGER_OR_NULL),
        **dict.fromkeys(("dedup?", "objective?", "self_sampling?"), str),
        **dict.fromkeys(("language?", "metric_for_best_model?"), TEXT_OR_NULL),
        "language_args?": (dict, NoneType),
    },
    "trainer_state.json": {"best_model_checkpoint?": TEXT_OR_NULL},
}
_TYPES: dict[type, str] = {int: "an integer", float: "a number", str: "a text", bool: "true or false"}
_TYPES |= {dict: "an object", list: "a list", NoneType: "null"}


class Placed(NamedTuple):
    """A row and the bytes it takes up."""

    start: int
    end: int
    row: Row


def scan(path: Path, start: int = 0) -> Iterator[Placed]:
    """The rows from byte `start` on, none without a file; a line that is still being written is left out."""
    if not path.exists():
        return
    shape = _shape(path)
    with path.open("rb") as stream:
        stream.seek(start)
        for line in stream:
            if not line.endswith(b"\n"):  # somebody is writing it, or was killed while doing so
                return
            yield Placed(start, start + len(line), _parsed(line, shape, path, start))
            start += len(line)


def read_rows(path: Path) -> Iterator[Row]:
    """All whole rows of a JSONL file, none if there is no such file."""
    return (placed.row for placed in scan(path))


def row_at(path: Path, start: int) -> Row:
    """The row that begins at byte `start`: one row of a large file costs one seek."""
    with path.open("rb") as stream:
        stream.seek(start)
        return _parsed(stream.readline(), _shape(path), path, start)


def append_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add rows to a JSONL file, in one go."""
    # One write: a reader beside us sees whole lines, or the last one unfinished.
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8", newline="\n") as stream:
        stream.write("".join(json_line(row) for row in rows))


def cut_rows(path: Path, length: int, step: int) -> bool:
    """Cut a file of rows to the `length` it had at `step`; False if it is not that file any more.

    Then the whole rows up to that step stay that are left.
    """
    with path.open("rb+") as stream:
        stream.seek(max(0, length - 1))
        if length == 0 or stream.read(1) == b"\n":  # where a row ended, one ends
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
        if flaw := flaw_of(found, _shape(path)):
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


def flaw_of(value: object, shape: Any, name: str = "it") -> str | None:
    """The first difference between a value and the shape it should have, None if there is none.

    >>> flaw_of({"step": 1, "count": "many"}, {"step": int, "count": int, "failure?": str})
    "count is 'many', expected an integer"
    """
    return next(_flaws(value, shape, name), None)


def _flaws(value: Any, shape: Any, name: str) -> Iterator[str]:
    if isinstance(shape, tuple):
        flaws = [flaw for one in shape if (flaw := flaw_of(value, one, name))]
        yield from flaws[:1] if len(flaws) == len(shape) else []
    elif isinstance(shape, frozenset):
        if not isinstance(value, str) or value not in shape:
            yield f"{name} is {value!r:.40}, expected one of {', '.join(sorted(shape))}"
    elif not _is_a(kind := type(shape) if isinstance(shape, dict | list) else shape, value):
        yield f"{name} is {value!r:.40}, expected {_TYPES[kind]}"
    elif isinstance(shape, list):
        for item in value:
            yield from _flaws(item, shape[0], name)
    elif isinstance(shape, dict):
        for said, inner in shape.items():
            for key in value if said == "*" else [said.removesuffix("?")]:
                if key in value:
                    yield from _flaws(value[key], inner, key)
                elif key == said:
                    yield f"no {key!r}"


def _is_a(kind: type, value: object) -> bool:
    # To Python, True is an integer.
    return isinstance(value, kind) and (kind in (bool, object) or not isinstance(value, bool))


def _shape(path: Path) -> Any:
    """What a file holds, by its place in a run."""
    if path.parent.name != "evaluations":
        return _SHAPES.get(path.name) or _SHAPES.get(path.parent.name, object)
    if path.suffix == SUMMARY:
        return SUMMARY_SHAPE
    return _JUDGED if path in samples_beside(summary_of(path)) else object


def _parsed(line: bytes, shape: Any, path: Path, start: int) -> Row:
    try:
        row = parse_json(line.decode())
        flaw = flaw_of(row, shape) if isinstance(row, dict) else "expected a JSON object"
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
    # Not `hash`, which differs from process to process; half a character may be among the parts.
    return hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


SUMMARY, SAMPLES, PASS1, UNFINISHED = ".json", ".jsonl", ".pass1.jsonl", ".partial.jsonl"


def samples_beside(summary: Path) -> tuple[Path, Path]:
    """Where the samples behind a summary are, and those drawn apart for the paper's pass@1."""
    return summary.with_suffix(SAMPLES), summary.with_suffix(PASS1)


def journal_beside(summary: Path) -> Path:
    """What an unfinished evaluation has finished so far."""
    return summary.with_suffix(UNFINISHED)


def summary_of(path: Path) -> Path:
    """The summary that a file belongs to, whichever of an evaluation's it is.

    >>> summary_of(Path("test.pass1.jsonl")).name
    'test.json'
    """
    # `.pass1.jsonl` is two suffixes, of which `with_suffix` would take one.
    name = path.name.removesuffix(SAMPLES).removesuffix(".pass1").removesuffix(SUMMARY)
    return path.with_name(name + SUMMARY)
