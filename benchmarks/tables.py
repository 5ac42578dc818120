"""What benchmarks share: how they are told numbers and how they print their results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

COUNT = click.IntRange(min=1)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on standard output, the first column to the left and numbers to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
