"""Tables of numbers: as CSV with every digit, as HTML for reading. An evaluation is two such tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from passatk import Estimate
from runreports.trace_html import shown_text

if TYPE_CHECKING:
    from partway.evaluation.results import Evaluation
    from partway.evaluation.samples import ProblemResult

MOST_PROBLEMS = 20  # of an evaluation that a notebook shows
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
        """A number as a reader wants it; a difference, whose heading is one, has its sign."""
        sign = "+" if " - " in self.heading else ""
        return f"{100 * number:{sign}.1f}" if self.is_share else f"{number:{sign},.{self.digits}f}"


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns; `marks` names a class for cells by row and column."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    marks: Mapping[tuple[int, int], str] = field(default_factory=dict)


def to_csv(table: Table) -> str:
    """The table as CSV; an estimate takes three columns, its value and the ends of its interval."""
    # One estimate makes a column wide in every row, or rows would have different lengths.
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
    headings = "".join(
        f'<th scope="col"{_classes("number" * _is_numeric(table, index))}>{escape(column.title)}</th>'
        for index, column in enumerate(table.columns)
    )
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
        is_number = _is_numeric(table, index)
        attributes = (' scope="row"' if index == 0 else "") + _classes(
            "number" * is_number, "long" * is_long, mark
        )
        tag = "td" if index else "th"
        yield f"<{tag}{attributes}>{_html(cell, column)}</{tag}>"


def _is_numeric(table: Table, index: int) -> bool:
    """Whether a column holds numbers, which stand to the right so that their digits are below each other."""
    cells = [row[index] for row in table.rows if row[index] is not None]
    return bool(cells) and not any(isinstance(cell, str) for cell in cells)


def _classes(*names: str) -> str:
    given = " ".join(name for name in names if name)
    return f' class="{given}"' if given else ""


def _html(cell: Cell, column: Column) -> str:
    if cell is None:
        return '<span class="none">–</span>'
    if isinstance(cell, str):
        return shown_text(cell)
    if not isinstance(cell, Estimate):
        return column.shown(cell)
    interval = f"{column.shown(cell.low)} to {column.shown(cell.high)}"
    return f"<b>{column.shown(cell.value)}</b> <small>{interval}</small>"


def evaluation_html(evaluation: Evaluation) -> str:
    """Every metric with its 95% interval, and the problems with fewest right samples."""
    rows: list[Sequence[Cell]] = [[name, estimate] for name, estimate in evaluation.metrics.items()]
    count = len(evaluation.results)
    metrics = Table(
        f"{count:,} problem{'s' * (count != 1)}, 95% intervals",
        [Column("metric"), Column("value", is_share=True)],
        rows,
    )
    hardest = sorted((_problem_row(result) for result in evaluation.results), key=lambda row: row[1] / row[2])
    columns = [Column("problem"), Column("right"), Column("samples"), Column("most frequent sample")]
    shown = f"the {MOST_PROBLEMS} hardest" if count > MOST_PROBLEMS else "hardest first"
    return to_html(metrics) + to_html(Table(f"Problems, {shown}", columns, hardest[:MOST_PROBLEMS]))


def _problem_row(result: ProblemResult) -> tuple[str, int, int, str]:
    samples = result.samples or result.pass1
    right = sum(one.sample.count for one in samples if one.passed)
    frequent = max((one.sample for one in samples), key=lambda sample: sample.count)
    return result.task_id, right, sum(one.sample.count for one in samples), frequent.completion.strip()
