"""Tables on a terminal that is too narrow for them."""

import io

from rich.console import Console

from partway.cli.table_style import plain_table


def test_a_name_too_long_for_the_terminal_goes_on_in_the_next_line():
    name = f"data/{'long' * 20}/train.jsonl"
    table = plain_table("file", "problems")
    table.add_row(name, "12,345")
    narrow = Console(file=io.StringIO(), width=40)
    narrow.print(table)
    _, *lines = narrow.file.getvalue().splitlines()
    assert lines[0].endswith("12,345")
    assert "".join(lines).replace(" ", "").replace("12,345", "") == name
