"""Write files whole or not at all; read JSON and YAML, or say why not.

Everything is written under a hidden temporary name beside its destination, flushed to disk and then
renamed. A process killed half-way leaves at most that hidden `.NAME.XXXX.tmp`.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

LARGEST_JSON = 64 * 1024 * 1024  # bytes; a larger file is not one of ours
LARGEST_YAML = 256 * 1024  # bytes; PyYAML takes a second to read them


class Unreadable(ValueError):
    """A text cannot be read as a value; the message says why."""


@contextmanager
def atomic_writer(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """A UTF-8 text file to write; `path` gets its content when the block ends without an error."""
    path = Path(path).resolve()
    if path.exists() and not path.is_file():  # a pipe or a terminal cannot be renamed onto
        with path.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream
        return
    with atomic_path(path) as temporary, temporary.open("x", encoding="utf-8", newline="\n") as stream:
        yield stream


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A hidden path for a file of any kind; it becomes `path` when the block ends without an error."""
    path = Path(path).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary_beside(path)
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk names no file
        raise
    finally:
        temporary.unlink(missing_ok=True)
    _sync(path.parent)


@contextmanager
def atomic_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary directory to fill; it becomes `path`, replacing an old one, when the block ends well."""
    path = Path(path).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, old = _temporary_beside(path), _temporary_beside(path)
    temporary.mkdir()
    try:
        yield temporary
        # Content before names: a name that survives a power cut must not point at nothing.
        for entry in (*temporary.rglob("*"), temporary):
            _sync(entry)
        if path.exists():  # a directory cannot be renamed onto one that holds files
            path.rename(old)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    _sync(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def remove_remains(directory: Path) -> None:
    """Remove what killed processes left half-written in `directory` and below."""
    for path in list(directory.rglob(".*.tmp")):  # a list: nothing is removed while walking
        if not _TEMPORARY(path.name):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.tmp").fullmatch


def _temporary_beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def _sync(path: Path) -> None:
    if os.name != "posix" and path.is_dir():  # only POSIX can open a directory to flush it
        return
    # A directory cannot be opened for writing; Windows flushes only what was.
    descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_object(path: Path, parse: Callable[[str], Any]) -> dict[str, Any]:
    """The object in a file: JSON's `{...}`, or YAML's lines of `key: value`, which may be none."""
    largest = LARGEST_YAML if parse is parse_yaml else LARGEST_JSON
    try:
        if path.stat().st_size > largest:
            raise Unreadable(f"more than {largest:,} bytes")
        content = parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 (byte {error.start})") from None
    if content is None and parse is parse_yaml:
        return {}
    if not isinstance(content, dict):
        raise Unreadable(f"expected names with values, found a {type(content).__name__}")
    return {str(key): value for key, value in content.items()}


def parse_json(text: str) -> Any:
    """The value that JSON text stands for."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"not JSON ({error})") from None


def parse_yaml(text: str) -> Any:
    """The value that YAML text stands for.

    >>> parse_yaml("seed: 1\\nseed: 2")
    Traceback (most recent call last):
    partway.files.Unreadable: line 2 gives 'seed' again; keep one of the two
    """
    import yaml  # here: `partway --help` does without it

    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        _refuse_repeated_keys(node)
        return None if node is None else loader.construct_document(node)
    except Unreadable:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # such as a date that does not exist
        raise Unreadable(f"not YAML ({' '.join(str(error).split())})") from None


def _refuse_repeated_keys(node: Any) -> None:
    """PyYAML takes the last of several equal keys, and would not say so."""
    kind = None if node is None else node.id  # as PyYAML calls its nodes
    if kind == "sequence":
        for item in node.value:
            _refuse_repeated_keys(item)
    elif kind == "mapping":
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen and name != "<<":  # a merge may be given several times
                line = key.start_mark.line + 1
                raise Unreadable(f"line {line} gives {name!r:.60} again; keep one of the two")
            seen.add(name)
            _refuse_repeated_keys(value)
