"""What the documentation shows is what the code does."""

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_readmes_python_example_is_short_and_runs(tmp_path: Path):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    assert len(example.splitlines()) <= 20
    script = tmp_path / "example.py"
    script.write_text(example.replace("max_steps=20", 'max_steps=2, report_to="none"'), encoding="utf-8")
    command = [sys.executable, str(script)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert result.returncode == 0, result.stderr
    assert "answer = t0 + n2" in result.stdout


def test_every_command_in_the_readme_exists():
    from partway.cli import COMMANDS

    blocks = re.findall(r"```\w*\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    used = set(re.findall(r"^partway ([a-z]+)", "\n".join(blocks), re.M))
    assert used
    assert used <= set(COMMANDS)
