"""Reads rows from any source: a file, a data set of the Hub, a pandas or Hugging Face table, dicts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from partway.data.hub import hub_name, read_hub
from partway.data.records import (
    Record,
    number_records,
    read_cells,
    read_json,
    read_jsonl,
    read_parquet,
    read_xml,
)
from partway.errors import ProblemError, suggestion
from partway.problems import BadRow, ProblemSource

Records: TypeAlias = Iterator[Record | BadRow]

READERS: dict[str, Callable[[Path], Records]] = {
    ".jsonl": read_jsonl,
    ".json": read_json,
    ".csv": partial(read_cells, delimiter=",", kind="CSV"),
    ".tsv": partial(read_cells, delimiter="\t", kind="TSV"),
    ".parquet": read_parquet,
    ".xml": read_xml,
}


def records_of(source: ProblemSource) -> Records:
    """The rows of a source, whatever it is."""
    if isinstance(source, str | os.PathLike):
        # A file of that name comes first, also where the Hub has a data set called like it.
        wanted = None if Path(source).exists() else hub_name(os.fspath(source))
        if wanted is not None and Path(wanted.name).suffix not in READERS:
            return number_records(read_hub(wanted), str(wanted))
        return read_records(Path(source))
    if isinstance(source, Mapping):
        keys = ", ".join(map(str, source))
        raise ProblemError(f"expected rows, found a mapping with {keys}; pass one of its splits")
    return number_records(_plain_rows(source), name_of(source))


def name_of(source: ProblemSource) -> str:
    """What messages call a source."""
    return os.fspath(source) if isinstance(source, str | os.PathLike) else "rows"


def read_records(path: Path) -> Records:
    """The rows of a file, by its suffix."""
    if path.is_dir():
        names = sorted(child.name for child in path.iterdir() if child.suffix in READERS)
        hint = (
            f"name one of its files: {', '.join(names)}" if names else f"it has no {', '.join(READERS)} file"
        )
        raise ProblemError(f"{path} is a directory; {hint}")
    if not path.exists():
        beside = [child.name for child in path.parent.glob("*")] if path.parent.is_dir() else []
        raise ProblemError(f"{path}: no such file{suggestion(path.name, beside)}")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise ProblemError(f"{path}: cannot read '{path.suffix}' files; try one of {', '.join(READERS)}")
    return reader(path)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a file none of whose rows may be bad: the raw files of a public data set."""
    rows = []
    for record in read_records(path):
        if isinstance(record, BadRow):
            raise ProblemError(f"{record}; is the file complete?")
        rows.append(dict(record.fields))
    if not rows:
        raise ProblemError(f"{path}: the file is empty")
    return rows


def _plain_rows(source: Iterable[Mapping[str, Any]]) -> Iterable[object]:
    """Rows as dicts; a pandas table gives its columns when it is iterated, so it is asked for rows."""
    if hasattr(source, "itertuples") and hasattr(source, "columns"):
        names = [str(name) for name in source.columns]
        tuples = source.itertuples(index=False, name=None)
        return ({n: _plain(v) for n, v in zip(names, row, strict=True)} for row in tuples)
    return source


def _plain(value: Any) -> Any:
    """A cell without pandas: its missing values are nothing, its arrays lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    # NaN is the one float that is not itself.
    is_missing = value != value if isinstance(value, float) else type(value).__name__ in ("NAType", "NaTType")
    return None if is_missing else value
