"""Files and directories that appear whole or not at all, however the process ends.

Everything is written under a hidden temporary name beside its destination, flushed to disk and then
renamed. A process killed half-way leaves at most that hidden `.NAME.XXXX.tmp`.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


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
