"""The examples are short, complete and run."""

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


def test_own_answer_types_get_their_verdicts():
    shown = run("own_answer_type.py")
    assert "another way: new_fully_correct" in shown
    assert "wrong: incorrect" in shown
    assert "a filter: new_fully_correct" in shown
    assert "the odd ones: incorrect" in shown


@pytest.mark.slow
def test_own_problems_are_learned(capsys):
    runpy.run_path(str(EXAMPLES / "own_problems.py"), run_name="__main__")
    assert "solutions kept for 50 problems" in capsys.readouterr().out
