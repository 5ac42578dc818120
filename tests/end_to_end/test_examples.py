"""The examples are short, complete and run."""

import ast
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    result = subprocess.run(command, capture_output=True, text=True, timeout=1200, env=environment)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
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


def shown_by(source: str, names: dict[str, object]) -> object:
    """Run a cell of a notebook; what its last line is worth, if it is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last is not None else None


def test_the_notebook_runs_and_shows_a_trace_a_buffer_and_an_evaluation(capsys):
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, object] = {}
    shown = [value for cell in cells if (value := shown_by(cell, names)) is not None]
    assert [type(value).__name__ for value in shown] == ["Trace", "SolutionBuffer", "Evaluation"]
    for value in shown:
        assert "<table" in value._repr_html_()
    verdicts = capsys.readouterr().out.split()
    assert verdicts == ["new_fully_correct", "new_partially_correct", "incorrect"]
    assert all(not cell.get("outputs") for cell in notebook["cells"])
