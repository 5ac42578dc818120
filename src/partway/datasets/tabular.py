"""Rows of tables: CSV, TSV, Parquet, and XML as ASDiv has it.

A row that cannot be read is a `BadRow` among the records, a file that cannot be read a `ProblemError`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from partway.datasets.records import BadRow, Record, number_records
from partway.errors import ProblemError


def read_cells(path: Path, delimiter: str, kind: str) -> Iterator[Record | BadRow]:
    """Rows of cells between delimiters, below a row of names; an empty cell is left out."""
    # Bytes that are no UTF-8 come through as lone surrogates, so that their row can be named.
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
        reader = csv.reader(stream, delimiter=delimiter, strict=True)
        header: list[str] | None = None
        while True:
            line = reader.line_num + 1
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
            _check_parquet(path, file.metadata)
            yield from number_records(_parquet_rows(path, file), str(path))
    except (pyarrow.ArrowException, OSError) as error:
        raise ProblemError(f"{path}: not a readable Parquet file: {str(error).splitlines()[0]}") from None


# A few hundred bytes of Parquet can stand for gigabytes: packed pages, or one long text that all rows share.
MOST_UNPACKED = 100  # bytes for each byte of a file
SMALL = 16 * 1024 * 1024  # bytes that a file may always take
PARQUET_BATCH = 16  # rows: as many copies of one long text are in memory at a time


def _check_parquet(path: Path, metadata: Any) -> None:
    """Refuse what a file claims to hold if its size cannot be that of problems."""
    size = path.stat().st_size
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    columns = [group.column(number) for group in groups for number in range(group.num_columns)]
    unpacked = sum(column.total_uncompressed_size for column in columns)
    if unpacked > SMALL + MOST_UNPACKED * size or metadata.num_rows > SMALL // 16 + size:
        raise _bomb(path, size)


def _parquet_rows(path: Path, file: Any) -> Iterator[Mapping[str, Any]]:
    size, taken = path.stat().st_size, 0
    for batch in file.iter_batches(batch_size=PARQUET_BATCH):
        taken += batch.nbytes
        if taken > 8 * SMALL + MOST_UNPACKED * size:
            raise _bomb(path, size)
        yield from batch.to_pylist()


def _bomb(path: Path, size: int) -> ProblemError:
    return ProblemError(
        f"{path}: its {size:,} bytes unpack to more than {MOST_UNPACKED} times as many, as no problems do; "
        "write it again from its source"
    )
