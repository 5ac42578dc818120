"""Reading a run in the terminal: pages, filters, states."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from partway import Problem
from partway.buffer import Verdict
from partway.cli import app
from partway.runs import Run
from partway.sample import Sample

OIL = Problem("oil", "10 ml for each of 2 wheels?", 20, "n0 = 10\nn1 = 2\nanswer = n0 * n1")
TEA = Problem("tea", "3 cups of 20 ml?", 60)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = Run(tmp_path / "run")
    run.directory.mkdir()
    run.write_problems("train", [OIL, TEA])
    run.write_config({"answer_variable": "answer"})
    beginning = Sample(
        "oil",
        "",
        "n0 = 2\nn1 = 10\nanswer = n0 + n1\n",
        3,
        True,
        step=1,
        verdict=Verdict.NEW_PARTIALLY_CORRECT,
    )
    others = [
        Sample("tea", "", f"answer = {n}\n", 1, True, step=n, verdict=Verdict.INCORRECT) for n in range(2, 14)
    ]
    broken = Sample(
        "oil", "n0 = 2", "n1 = = [bold]\x1b[2J\n", 1, False, step=14, verdict=Verdict.NOT_EXECUTABLE
    )
    run.append_samples([beginning, *others, broken])
    return run


def shown(run: Run, *options: str) -> str:
    result = CliRunner().invoke(app, ["browse", str(run.directory), *options], env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_pages_have_so_many_rows_and_say_whether_more_follow(run: Run) -> None:
    first, last = shown(run, "--rows", "10"), shown(run, "--rows", "10", "--page", "2")
    assert "new partially correct x3" in first
    assert first.endswith("page 1, more follow\n")
    assert "answer = 10" in first
    assert all(f"answer = {n}" in last for n in (11, 12, 13)), "the page begins where the first ended"
    assert "answer = 2" not in last
    assert last.endswith("page 2, the last\n")
    assert shown(run, "--page", "9") == "no samples here\n"


def test_samples_are_filtered_by_verdict_and_problem(run: Run) -> None:
    assert "answer = " not in shown(run, "--verdict", "not_executable")
    assert "n1 = = [bold]\\x1b[2J" in shown(run, "--verdict", "not_executable"), "what was written, no markup"
    assert "tea" not in shown(run, "--problem", "WHEELS")
    assert shown(run, "--problem", "nothing").startswith("no samples here with this verdict or text")


def test_a_completion_begins_a_line_behind_its_prefix(run: Run) -> None:
    assert "n0 = 2n1" not in shown(run, "--verdict", "not_executable")
    run.append_samples(
        [Sample("oil", "n0 = 10", "answer = n0 * 2\n", 1, True, step=15, verdict=Verdict.INCORRECT)]
    )
    assert "{10, 20}" in shown(run, "--problem", "oil", "--verdict", "incorrect", "--states", "1")


def test_states_stand_beside_those_of_the_reference(run: Run) -> None:
    output = shown(run, "--states", "1")
    assert "10 ml for each of 2 wheels?" in output
    assert [line for line in output.splitlines() if line.count("{2, 10}") == 2], "the state both reach"
    assert "answer 12: right up to step 2" in output
    assert "{2}" in shown(run, "--problem", "tea", "--states", "1"), "a problem without a reference"
    assert "SyntaxError" in shown(run, "--verdict", "not_executable", "--states", "1")


def test_a_number_that_is_not_on_the_page_is_refused(run: Run) -> None:
    result = CliRunner().invoke(app, ["browse", str(run.directory), "--rows", "3", "--states", "4"])
    assert "there is no sample 4 on this page; it has 3" in str(result.exception)


def test_states_are_those_of_the_lines_that_were_run(run: Run) -> None:
    for text in ("n0 = 10\nn1 = 2", "n0 = 10"):  # cut off: perhaps to become 20, or 100
        run.append_samples([Sample("oil", "", text, 1, False, step=16, verdict=Verdict.INCORRECT)])
    assert "right up to step 1 " in shown(run, "--problem", "wheels", "--states", "3")
    assert "no state in common" in shown(run, "--problem", "wheels", "--states", "4")
