"""Every file that docs/extending.md shows is short and works."""

import os
import re
import runpy
import sys
from pathlib import Path

import pytest
from report_cases import write_run

PAGE = Path(__file__).parent.parent / "docs" / "extending.md"
WITHOUT = os.environ.get("PARTWAY_WITHOUT", "")  # in a copy without one folder (tests/cases/removable.py)
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S))


@pytest.fixture
def run_file(tmp_path, monkeypatch):
    """Runs a file of the page as if a user had saved it and started it there."""

    def run(name, *arguments):
        (tmp_path / name).write_text(FILES[name], encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        try:
            runpy.run_path(name, run_name="__main__")
        finally:
            sys.modules.pop(name.removesuffix(".py"), None)

    return run


def test_there_is_an_example_of_everything():
    shown = PAGE.read_text(encoding="utf-8").count("```python")
    titles = re.findall(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), re.M)
    assert len(FILES) == shown == len(titles) == 10


@pytest.mark.parametrize("name", FILES)
def test_an_example_has_at_most_thirty_lines(name):
    assert len(FILES[name].splitlines()) <= 30


@pytest.mark.parametrize("name", sorted(FILES.keys() - {"own_figure.py"}))
def test_the_example_works(name, run_file):
    if WITHOUT and re.search(rf"\bpartway\.{WITHOUT}\b", FILES[name]):
        pytest.skip(f"it shows {WITHOUT}, which was taken away")
    run_file(name)


@pytest.mark.slow
def test_a_figure_of_ones_own_is_in_the_report(tmp_path, run_file, capsys, no_pngs):
    write_run(tmp_path / "run")
    run_file("own_figure.py", tmp_path / "run")
    assert "report.html" in capsys.readouterr().out
    assert "Kept per problem" in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "report" / "figures" / "kept.svg").is_file()
