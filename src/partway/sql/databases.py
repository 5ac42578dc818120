"""What a query runs against: a SQLite file, the name of one in a folder, or a script of tables and rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from os.path import isfile
from pathlib import Path
from typing import Any

from partway.errors import ProblemError, shown

SUFFIXES = (".sqlite", ".sqlite3", ".db")
MAGIC = b"SQLite format 3\0"

_SCRIPT = re.compile(r"\bcreate\s+(?:temp\w*\s+)?(?:table|view)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Database:
    """A database by its key, which is the same exactly for equal files and texts.

    `seed`, if there is one, stands for a change of it: the same tables with other rows.
    """

    key: str
    path: Path | None = None
    script: str = ""
    seed: int | None = None

    def __str__(self) -> str:
        return f"the database {self.path or shown(self.script)}"

    def changed(self, seed: int) -> Database:
        return replace(self, key=f"{self.key} changed {seed}", seed=seed)

    @property
    def original(self) -> Database:
        return self if self.seed is None else replace(self, key=self.key.partition(" changed ")[0], seed=None)


def database_of(context: Any, folder: str = "") -> Database:
    """The database that the context of a problem says; `folder` is where names are looked up, or one file.

    A context is a path, a script, a name, or an object with `database` and `changed`, the seed of a change.

    >>> database_of("CREATE TABLE t (a); INSERT INTO t VALUES (1)").path is None
    True
    """
    if isinstance(context, Mapping):
        return database_of(context.get("database"), folder).changed(int(context["changed"]))
    if context is None:
        if not folder:
            raise ProblemError(
                "a query needs a database: a column `context`, or one for all (--database FILE)"
            )
        return _file(Path(folder))
    if not isinstance(context, str):
        raise ProblemError(f"context is {shown(context)}, expected a database: a path, a name or its tables")
    if _SCRIPT.search(context):
        key = blake2b(context.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        return Database(key, script=context)
    return _file(_found(context, folder))


def _found(name: str, folder: str) -> Path:
    """Where a database is: as Spider and BIRD have it, `folder/name/name.sqlite`, or the path itself."""
    stem = Path(name).stem if name.endswith(SUFFIXES) else name
    places = [Path(folder, stem, f"{stem}{end}") for end in SUFFIXES] if folder else []
    places += [Path(folder, f"{stem}{end}") for end in SUFFIXES] if folder else []
    places += [Path(folder)] if folder and Path(folder).stem == stem else []
    places.append(Path(name))
    path = next((place for place in places if isfile(place)), None)  # also of names that no file can have
    if path is None:
        looked = f" in {folder}" if folder else "; set database to the folder that holds it"
        raise ProblemError(f"there is no database {shown(name)}{looked}")
    return path


def _file(path: Path) -> Database:
    try:
        told = path.stat()
    except OSError as error:
        raise ProblemError(f"{path}: cannot be read ({error.strerror})") from None
    return _opened(path, told.st_size, told.st_mtime_ns)


@lru_cache(maxsize=1 << 12)
def _opened(path: Path, size: int, changed: int) -> Database:
    with path.open("rb") as file:
        if size and file.read(len(MAGIC)) != MAGIC:
            raise ProblemError(f"{path}: not a SQLite database")
    return Database(f"{path.resolve()} {size} {changed}", path)


@dataclass(frozen=True)
class TableInfo:
    """A table of a database, as its prompt shows it."""

    name: str
    sql: str
    columns: list[tuple[str, str]]  # names and types
    values: list[list[Any]]  # a few of each column
