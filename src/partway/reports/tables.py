"""Tables of numbers, as CSV with every digit and as HTML for reading."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from partway.evaluation import Estimate

LONG = 30  # characters of a text that may be wrapped
Cell = str | int | float | Estimate | None


@dataclass(frozen=True)
class Column:
    """A heading and how numbers under it read: shares as percentages, others with so many digits."""

    heading: str
    is_share: bool = False
    digits: int = 0

    @property
    def title(self) -> str:
        """The heading with its unit."""
        return f"{self.heading} (%)" if self.is_share else self.heading

    def shown(self, number: float) -> str:
        """A number as a reader wants it."""
        return f"{100 * number:.1f}" if self.is_share else f"{number:,.{self.digits}f}"


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns; `marks` names a class for cells by row and column."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    marks: Mapping[tuple[int, int], str] = field(default_factory=dict)


def to_csv(table: Table) -> str:
    """The table as CSV; an estimate takes three columns, its value and the ends of its interval."""
    is_estimate = [
        any(isinstance(row[index], Estimate) for row in table.rows) for index in range(len(table.columns))
    ]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = (column.heading for column in table.columns)
    writer.writerow(
        part
        for name, wide in zip(names, is_estimate, strict=True)
        for part in ((name, f"{name} low", f"{name} high") if wide else (name,))
    )
    for row in table.rows:
        writer.writerow(
            part for cell, wide in zip(row, is_estimate, strict=True) for part in _csv_cells(cell, wide)
        )
    return stream.getvalue()


def _csv_cells(cell: Cell, wide: bool) -> tuple[object, ...]:
    if isinstance(cell, Estimate):
        return cell.value, cell.low, cell.high
    return (cell, "", "") if wide else (cell,)


def to_html(table: Table) -> str:
    """The table as HTML; everything in it is escaped."""
    headings = "".join(f'<th scope="col">{escape(column.title)}</th>' for column in table.columns)
    body = "".join(f"<tr>{''.join(_cells(table, number))}</tr>\n" for number in range(len(table.rows)))
    label = escape(table.caption, quote=True)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{label}">\n<table>\n'
        f"<caption><span>{escape(table.caption)}</span></caption>\n"
        f"<thead><tr>{headings}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n</div>\n"
    )


def _cells(table: Table, number: int) -> Iterator[str]:
    for index, (column, cell) in enumerate(zip(table.columns, table.rows[number], strict=True)):
        mark = table.marks.get((number, index), "")
        is_long = isinstance(cell, str) and len(cell) > LONG
        names = " ".join(name for name in ("long" if is_long else "", mark) if name)
        attributes = (' scope="row"' if index == 0 else "") + (f' class="{names}"' if names else "")
        tag = "td" if index else "th"
        yield f"<{tag}{attributes}>{_html(cell, column)}</{tag}>"


def _html(cell: Cell, column: Column) -> str:
    if cell is None:
        return '<span class="none">–</span>'
    if isinstance(cell, str):
        return escape(cell)
    if not isinstance(cell, Estimate):
        return column.shown(cell)
    interval = f"{column.shown(cell.low)} to {column.shown(cell.high)}"
    return f"<b>{column.shown(cell.value)}</b> <small>{interval}</small>"
