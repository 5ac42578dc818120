"""What the documentation shows is what the code does."""

import doctest
import importlib
import re
import runpy
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
import yaml

from partway import trace

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
WITH_DOCTESTS = [
    path.relative_to(ROOT / "src").with_suffix("").as_posix().replace("/", ".")
    for path in sorted((ROOT / "src").rglob("*.py"))
    if "\n    >>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", WITH_DOCTESTS)
def test_the_examples_in_docstrings_hold(name: str):
    result = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path):
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_generated_pages_are_up_to_date():
    # A process of its own: click remembers how a command was first asked for help, and other tests ask first.
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_readmes_python_example_is_short_and_finds_a_right_solution(tmp_path: Path, monkeypatch, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    assert len(example.splitlines()) <= 20
    script = tmp_path / "example.py"
    script.write_text(example.replace("max_steps=", 'report_to="none", max_steps='), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    head, *steps = capsys.readouterr().out.splitlines()
    assert int(head.split()[0]) >= 1, "it found something that was not given"
    assert trace("\n".join(steps)).answer in (25, 87, 99, 34), "right for one of the problems"


def test_every_command_in_the_readme_exists():
    from partway.cli import COMMANDS

    blocks = re.findall(r"```\w*\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    used = set(re.findall(r"^partway ([a-z]+)", "\n".join(blocks), re.M))
    assert used
    assert used <= set(COMMANDS)


def test_every_page_of_the_documentation_is_in_the_navigation():
    groups = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    listed = [[group] if isinstance(group, str) else next(iter(group.values())) for group in groups]
    assert sorted(chain(*listed)) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))
