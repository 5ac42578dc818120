"""Comparisons as tables on standard output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from rich.console import Console

from partway.cli.table_style import plain_table
from partway.comparing.tables import all_tables, shown
from partway.evaluation import Estimate

if TYPE_CHECKING:
    from partway.comparing import Experiment, Outcome
    from partway.evaluation.number_tables import Cell, Column, Table


def show_comparison(experiment: Experiment, outcomes: Sequence[Outcome]) -> None:
    """Every table, under each value its interval; then how models were chosen."""
    for table in all_tables(experiment, outcomes):
        show_table(table)
        click.echo()
    for rule in experiment.rules():
        click.echo(rule)


def show_table(table: Table) -> None:
    """One table; pass@k is headed @k, so that it fits a terminal."""
    headings = [column.heading.replace("pass@", "@") for column in table.columns]
    drawn = plain_table(*headings, title=table.caption)
    for row in table.rows:
        drawn.add_row(*(_cell(cell, column) for cell, column in zip(row, table.columns, strict=True)))
    Console().print(drawn)


def _cell(cell: Cell, column: Column) -> str:
    if not isinstance(cell, Estimate):
        return shown(cell, column)
    sign = "+" if " - " in column.heading else ""
    low, high = (f"{100 * bound:{sign}.0f}" for bound in (cell.low, cell.high))
    between = " to " if sign else "-"
    return f"{100 * cell.value:{sign}.1f}\n[dim]{low}{between}{high}[/dim]"
