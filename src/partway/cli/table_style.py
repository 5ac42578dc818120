"""The look of tables on standard output."""

from __future__ import annotations

from rich.table import Table


def plain_table(*headings: str, title: str | None = None) -> Table:
    """A table without lines; the first column and those without a heading hold text, the others numbers."""
    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in (headings[0], "") else "right")
    return table
