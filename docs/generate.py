"""Writes the pages that are made from the code: commands, keys, the map of files. `--check` only compares.

python docs/generate.py
python docs/generate.py --check
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from api_page import api_page
from setting_tables import tables
from sizing import savings, table

from partway.cli import app

DOCS = Path(__file__).parent
ROOT = DOCS.parent
HEADER = """# Command line

After this page you can find every command and option. It is made from `--help` by `make docs`.

Exit codes: 0 fine, 1 a mistake in what was given (one line: what, where, what to try), 2 usage, 130
interrupted. `--quiet` before the command prints results only, `--debug` shows tracebacks. Shell completion:
`eval "$(_PARTWAY_COMPLETE=bash_source partway)"` (or `zsh_source`, `fish_source`).
"""


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Every command's path and help, depth first."""
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None, f"{name} is listed, so it exists"
            yield from commands(child, click.Context(child, info_name=name, parent=context))


def cli_page() -> str:
    names = app.context_settings["help_option_names"]  # click remembers those it was first asked with
    context = click.Context(
        app, info_name="partway", terminal_width=100, max_content_width=100, help_option_names=names
    )
    sections = [f"## `{path}`\n\n```text\n{text}\n```\n" for path, text in commands(app, context)]
    return "\n".join([HEADER, *sections])


def with_table(page: str, name: str, rows: str) -> str:
    """The page with what stands between two marks made anew; a page without them is a mistake of ours."""
    begin, end = f"<!-- {name}: made by docs/generate.py -->\n", f"<!-- end of {name} -->\n"
    before, opened, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    assert opened, f"{begin.strip()} is missing"
    assert closed, f"{end.strip()} is missing"
    return f"{before}{begin}\n{rows.strip()}\n\n{end}{after}"


def keys_page() -> str:
    return with_table(read(DOCS / "keys.md"), "keys", tables())


def gpus_page() -> str:
    configs = ROOT / "configs"
    return with_table(read(DOCS / "gpus.md"), "savings", savings(configs / "modern"))


def performance_page() -> str:
    configs = ROOT / "configs"
    page = with_table(read(DOCS / "performance.md"), "modern", table(configs / "modern"))
    return with_table(page, "paper", table(configs / "paper"))


WORDS = ROOT / "src" / "runexplorer" / "static" / "app.js"


def index_page() -> str:
    """What the words of pages and tables mean, as the explorer has it."""
    listed = WORDS.read_text(encoding="utf-8").partition("const WORDS = {")[2].partition("\n  };")[0]
    words = re.findall(r'^    "?([^":]+)"?: "(.*)",$', listed, re.M)
    words += [
        ("FCS, PCS", "fully- and partially-correct solutions"),
        ("MLE", "maximum likelihood estimation: learning the references alone"),
        ("arm", "one way of learning in a comparison"),
        ("dev", "problems on which the best checkpoint is chosen"),
    ]
    rows = "\n".join(f"| {word} | {meaning} |" for word, meaning in words)
    return with_table(read(DOCS / "index.md"), "words", f"| word | meaning |\n| --- | --- |\n{rows}")


PAGES = {
    "index.md": index_page,
    "api.md": api_page,
    "cli.md": cli_page,
    "keys.md": keys_page,
    "gpus.md": gpus_page,
    "performance.md": performance_page,
}


def main() -> int:
    stale = [name for name, page in PAGES.items() if read(DOCS / name) != page()]
    if "--check" in sys.argv:
        print("\n".join(f"docs/{name} is out of date: run `make docs`" for name in stale) or "up to date")
        return 1 if stale else 0
    for name in stale:
        (DOCS / name).write_text(PAGES[name](), encoding="utf-8")
    return 0


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
