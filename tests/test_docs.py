"""What the documentation shows is what the code does."""

import doctest
import importlib
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from itertools import chain, pairwise
from pathlib import Path

import click
import pytest
import yaml
from transformers import TrainingArguments

from partway import trace
from partway.cli import app
from partway.training import SelfSamplingConfig

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


def without_code(text: str) -> str:
    return re.sub(r"^( *)(`{3,}).*?^\1\2$", "", text, flags=re.M | re.S)


def anchor(heading: str) -> str:
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", without_code(page.read_text(encoding="utf-8")), re.M)
    assert len(set(map(anchor, headings))) == len(headings), f"two headings of {page.name} have one anchor"
    return set(map(anchor, headings))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_to_a_file_and_a_heading(page: Path):
    links = re.findall(
        r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8")
    )
    for name, heading in links:
        target = page.parent / name if name else page
        assert target.exists(), name
        assert not heading or heading in anchors(target), f"{name}#{heading}"


def test_pages_that_code_and_other_texts_name_exist():
    folders = ("src", "tests", "examples", "configs", "benchmarks", "docs")
    kinds = (".py", ".md", ".yaml", ".yml", ".js", ".sh", ".sbatch", ".toml")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in kinds]
    files += [path for path in ROOT.iterdir() if path.suffix in kinds or path.name == "Makefile"]
    named = {
        (name, path)
        for path in files
        for name in re.findall(r"\bdocs/(\w+\.md)\b", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 30
    assert [(name, path) for name, path in named if not (ROOT / "docs" / name).exists()] == []


@pytest.mark.parametrize("page", sorted({page.name for page in PAGES} - {"README.md", "api.md", "cli.md"}))
def test_lines_have_at_most_120_characters_where_they_can_be_broken(page: str):
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    unbreakable = re.compile(r"\s*(\||!\[|\(?\[[^]]+\]\(\S+\)\S*$)")  # a table's row, an image, one link
    assert [line for line in lines if len(line) > 120 and not unbreakable.match(line)] == []


def test_links_at_the_head_of_the_experiments_lead_to_every_section():
    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[.+?\]\(#(.+?)\) \|", page, re.M)
    assert listed == [anchor(heading) for heading in re.findall(r"^## (.+)$", page, re.M)]


def test_links_to_tests_lead_to_files_and_keys_beside_others_are_ours():
    page = (ROOT / "docs" / "coming_from.md").read_text(encoding="utf-8")
    tests = re.findall(r"`(tests/[\w/]+\.py)`", page)
    assert tests
    assert [name for name in tests if not (ROOT / name).exists()] == []
    first_column = re.findall(r"^\| (`[^|]+`) \|", page.partition("## Keys")[2].partition("\n## ")[0], re.M)
    keys = {key for cell in first_column for key in re.findall(r"`(\w+)`", cell)}
    assert len(keys) > 30
    assert keys <= {field.name for field in fields(SelfSamplingConfig)}


def every_command(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from every_command(child)


def test_generated_pages_are_up_to_date(monkeypatch, capsys):
    # Click remembers how a command was first asked for help, and other tests ask first.
    for command in every_command(app):
        monkeypatch.setattr(command, "_help_option", None)
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    monkeypatch.setattr(sys, "argv", ["generate.py", "--check"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "docs" / "generate.py"), run_name="__main__")
    assert ended.value.code == 0, capsys.readouterr().out


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path):
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len([*tmp_path.rglob("index.html")]) == sum(KINDS.values())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lists_and_tables_begin_after_an_empty_line(page: Path):
    lines = without_code(page.read_text(encoding="utf-8")).splitlines()
    for before, line in pairwise(lines):
        begins_list = re.match(r"([-*+]|\d+\.) ", line) and not re.match(r"([-*+]|\d+\.) |\s|$", before)
        begins_table = line.startswith("|") and not re.match(r"\||$", before)
        assert not begins_list, line
        assert not begins_table, line


@pytest.mark.slow
def test_the_readmes_python_example_is_short_and_finds_a_right_solution(tmp_path: Path, monkeypatch, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    assert len(example.splitlines()) <= 15
    script = tmp_path / "example.py"
    script.write_text(example.replace("max_steps=", 'report_to="none", max_steps='), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    head, *steps = capsys.readouterr().out.splitlines()
    assert int(head.split()[0]) >= 1, "it found something that was not given"
    assert trace("\n".join(steps)).answer in (25, 87, 99, 34), "right for one of the problems"


def commands_shown() -> Iterator[tuple[str, list[str]]]:
    """Those in sentences and those in blocks; the latter are run, too, where they can be."""
    for page in PAGES:
        if page.name not in ("api.md", "cli.md", "experiments.md"):  # experiments: also of earlier versions
            text = page.read_text(encoding="utf-8")
            spans = re.findall(r"`partway\s+([a-z][^`]*)`", without_code(text))
            joined = re.sub(r" \\\n\s*", " ", text)
            lines = re.findall(r"^ *(?:\w+=\S+ )?partway +([a-z].*?)(?:\s# .*)?$", joined, re.M)
            blocks = [line for line in lines if line not in without_code(joined)]
            yield from ((page.name, command.split()) for command in [*spans, *blocks])


def test_commands_that_are_shown_exist_and_have_these_options():
    keys = {f"--{field.name}" for field in fields(SelfSamplingConfig)}
    for page, words in commands_shown():
        command, context = app, click.Context(app)
        rest = list(words)
        while isinstance(command, click.Group) and rest and re.fullmatch(r"[a-z0-9]+", rest[0]):
            found = command.get_command(context, rest.pop(0))
            assert found is not None, f"{page}: partway {' '.join(words)}"
            command = found
        options = {option for parameter in command.params for option in parameter.opts}
        options |= keys if words[0] == "train" else set()
        given = {word.split("=")[0] for word in rest if word.startswith("--")}
        assert given <= options, f"{page}: partway {' '.join(words)}"
    shown = {page for page, _ in commands_shown()}
    assert len([*commands_shown()]) > 100
    assert {"README.md", "gpus.md", "runs.md", "sql.md"} <= shown


def test_every_command_in_the_readme_exists():
    from partway.cli import commands

    blocks = re.findall(r"```\w*\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    used = set(re.findall(r"^partway ([a-z]+)", "\n".join(blocks), re.M))
    assert used
    assert used <= set(commands())


# 13 pages are written by hand, three by code (keys, commands, Python), one is the appendix.
KINDS = {"Start": 3, "How to": 6, "Reference": 3, "Why": 4, "Appendix": 1}


def navigation() -> dict[str, list[str]]:
    groups = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    return {kind: pages for group in groups for kind, pages in group.items()}


def test_pages_are_of_four_kinds_and_an_appendix_and_the_navigation_has_them_all():
    assert {kind: len(pages) for kind, pages in navigation().items()} == KINDS
    assert sorted(chain(*navigation().values())) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", sorted({*chain(*navigation().values())} - {"experiments.md"}))
def test_a_page_opens_with_what_its_reader_can_do_after_it(page: str):
    title, empty, opening = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()[:3]
    assert (title[:2], empty) == ("# ", "")
    assert opening.startswith("After this page you ")


def test_what_the_page_on_the_algorithm_names_is_what_runs():
    page = (ROOT / "docs" / "algorithm.md").read_text(encoding="utf-8")
    table = page.partition("## Where things are")[2].partition("## Decisions")[0]
    names = re.findall(r"`\.?(?:\w+\.)*(\w+)(?:\(\w*\))?(?:\.\w+)?`", table)
    files = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src" / "partway").rglob("*.py")}
    assert {"sample_solutions", "consider", "training_step", "is_correct"} <= set(names)
    for name in {name for name in names if name != "py"}:
        users = [path for path, text in files.items() if re.search(rf"(?<!def )\b{name}\b", text)]
        assert users or name == "training_step", f"{name} is used by nobody"  # which Trainer calls


def test_every_key_of_ours_is_used_by_a_page_an_example_or_an_experiment():
    """Of a key that nothing shows or needs, nobody knows why it is there; their number may only fall."""
    keys = SelfSamplingConfig.__annotations__.keys() - {f.name for f in fields(TrainingArguments)}
    lists = {"keys.md", "cli.md", "api.md", "coming_from.md"}  # which have all of them, or others' names
    shown = [page for page in PAGES if page.name not in lists]
    tried = chain(*((ROOT / folder).rglob("*.*") for folder in ("configs", "examples", "benchmarks")))
    shown += [path for path in tried if path.suffix in (".yaml", ".py")]
    words = {word for path in shown for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    assert sorted(keys - words) == []
    assert len(keys) <= 60


def test_the_readme_has_at_most_a_thousand_words():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 1000
