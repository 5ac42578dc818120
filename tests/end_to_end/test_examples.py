"""The examples are short, complete and run."""

import json
import os
import re
import runpy
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    result = subprocess.run(command, capture_output=True, text=True, timeout=1200, env=environment)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize(
    "path", sorted({*EXAMPLES.glob("*.py")} - {EXAMPLES / "tour.py"}), ids=lambda path: path.name
)
def test_an_example_has_fewer_than_sixty_lines(path: Path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < 60


def test_general_programs_keep_a_beginning_and_survive_hostile_code():
    shown = run("general_programs.py")
    assert "new_partially_correct" in shown
    assert "timeout:" in shown


def test_tested_functions_begin_right_inside():
    shown = run("tested_functions.py")
    assert "{1, 10, 56, 7, 8, 9}" in shown
    assert "new_partially_correct" in shown
    assert shown.rstrip().endswith("    wide = a - 2 * k")


def test_own_answer_types_get_their_verdicts():
    shown = run("own_answer_type.py")
    assert "another way: new_fully_correct" in shown
    assert "wrong: incorrect" in shown
    assert "a filter: new_fully_correct" in shown
    assert "the odd ones: incorrect" in shown


@pytest.mark.slow
def test_own_problems_are_learned(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["own_problems.py", "10"])
    runpy.run_path(str(EXAMPLES / "own_problems.py"), run_name="__main__")
    assert "solutions kept for 50 problems" in capsys.readouterr().out


@pytest.mark.slow
def test_the_tour_finds_solutions_that_nobody_wrote_and_ends_above_chance():
    shown = run("tour.py")
    assert re.findall(r"(new|known)_(fully|partially)_correct", shown) == [
        ("new", "partially"),
        ("new", "fully"),
        ("known", "fully"),
        ("known", "partially"),
        ("new", "partially"),
    ]
    [found] = re.findall(r"^(\d+) of 144 problems without a reference have a solution now", shown, re.M)
    assert int(found) > 0
    at_10 = {
        name.strip(): float(value) for name, value in re.findall(r"^([a-z ]+) \d.* (\S+) \(.*$", shown, re.M)
    }
    assert at_10["after training"] > at_10["chance"]


def test_the_notebook_of_the_tour_has_the_cells_of_the_script_and_what_they_show():
    cells_of = runpy.run_path(str(EXAMPLES.parent / "docs" / "notebook.py"))["cells_of"]
    cells = json.loads((EXAMPLES / "tour.ipynb").read_text(encoding="utf-8"))["cells"]
    made = cells_of((EXAMPLES / "tour.py").read_text(encoding="utf-8"))
    assert [(cell["cell_type"], cell["source"]) for cell in cells] == [
        (cell["cell_type"], cell["source"]) for cell in made
    ]
    assert cells[0]["source"][0] == "# A tour of partway\n", "a heading"
    assert {"markdown"} == {before["cell_type"] for before, cell in pairwise(made) if "outputs" in cell}
    kinds = [set(shown.get("data", ["text"])) for cell in cells for shown in cell.get("outputs", ())]
    assert {"text/html", "text/plain"} in kinds
    assert {"image/png", "text/plain"} in kinds
    assert kinds.count({"text"}) >= 6
    shown = [output for cell in cells for output in cell.get("outputs", ())]
    [picture] = [output for output in shown if "image/png" in output.get("data", ())]
    assert "partially correct" in picture["metadata"]["image/png"]["alt"], "what it shows is said"
