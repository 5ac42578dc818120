"""The look of tables on standard output."""

from __future__ import annotations

from typing import Literal

from rich.table import Table


def plain_table(*headings: str, title: str | None = None) -> Table:
    """A table without lines; the first column and those without a heading hold text, the others numbers.

    What is too long for a narrow terminal goes on in the next line: nothing is cut.
    """
    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        justify: Literal["left", "right"] = "left" if heading in (headings[0], "") else "right"
        table.add_column(heading, justify=justify, overflow="fold")
    return table
