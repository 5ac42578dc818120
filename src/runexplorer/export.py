"""A static copy of the explorer that opens from a folder: no server, no network, no programs to run.

A page opened from a folder may not fetch, so the data are scripts that hand it over: the run, the list, and
problems a few to a file.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import runreports
from partway.errors import ConfigError
from partway.files import atomic_directory
from partway.runs import Row, Run
from runexplorer.explorer import Explorer
from runexplorer.overview import Entry

STATIC = Path(__file__).parent / "static"
# The files of the page, by the names under which it asks for them.
FILES = {name: STATIC / name for name in ("index.html", "app.css", "search.js", "charts.js", "app.js")}
FILES["trace_html.css"] = Path(runreports.__file__).parent / "trace_html.css"
PROBLEMS_PER_FILE = 20  # one file each would be thousands, one for all would take long to open
MOST_IN_REPORT = 2_000  # problems, of which a copy takes seconds; `partway explore --export` copies more


def export(explorer: Explorer, folder: Path, on_progress: Callable[[int, int], None]) -> None:
    """Write the copy to `folder`, whole or not at all; an earlier copy there is replaced."""
    if not _may_be_replaced(folder):
        raise ConfigError(f"{folder}: holds something other than an exported page; choose another folder")
    explorer.check()
    with atomic_directory(folder) as directory:
        for name, file in FILES.items():
            shutil.copyfile(file, directory / name)
        _write_page(directory)
        (directory / "data").mkdir()
        entries = explorer.index.entries
        _hand_over(directory, "list", explorer.index.to_json())
        for start in range(0, len(entries), PROBLEMS_PER_FILE):
            _write_problems(directory, explorer, entries, start)
            on_progress(min(start + PROBLEMS_PER_FILE, len(entries)), len(entries))
        _hand_over(directory, "run", {**explorer.facts(), "problems_per_file": PROBLEMS_PER_FILE})


def beside_report(run: Run, baseline: Run | None, folder: Path) -> bool:
    """Write the copy that a report links to; False where it would be too large."""
    explorer = Explorer(run)
    if not 0 < len(explorer.index.entries) <= MOST_IN_REPORT:
        return False
    if baseline is not None:
        compared = Explorer(run, baseline)
        if any(entry.other is not None for entry in compared.index.entries):
            explorer = compared
    export(explorer, folder, lambda done, total: None)
    return True


def _may_be_replaced(folder: Path) -> bool:
    if not folder.exists():
        return True
    if not folder.is_dir():
        return False
    # What looks like an earlier copy is replaced; anything else may be somebody's work.
    return (folder / "data" / "run.js").is_file() or not any(folder.iterdir())


def _write_page(directory: Path) -> None:
    page = FILES["index.html"].read_text(encoding="utf-8")
    copy = page.replace('data-source="server"', 'data-source="folder"')
    assert copy != page, "the page says where its data come from"
    (directory / "index.html").write_text(copy, encoding="utf-8")


def _write_problems(directory: Path, explorer: Explorer, entries: Sequence[Entry], start: int) -> None:
    shown: dict[str, Row] = {}
    for entry in entries[start : start + PROBLEMS_PER_FILE]:
        view = explorer.problem(entry.key)
        if "evaluation" in view:
            view["evaluation"]["names"] = [view["evaluation"]["name"]]  # the others need the server
        shown[entry.key] = view
    _hand_over(directory, f"problems-{start // PROBLEMS_PER_FILE}", shown)


def _hand_over(directory: Path, name: str, content: object) -> None:
    # JSON in ASCII: a browser guesses the encoding of a file, and a text may hold half a character.
    script = f"partwayData({json.dumps(name)}, {json.dumps(content)});\n"
    (directory / "data" / f"{name}.js").write_text(script, encoding="ascii")
