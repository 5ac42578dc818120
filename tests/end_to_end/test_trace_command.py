import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

REFERENCE = "n0=2\nn1=10\nn2=5\nt0=n0*n1\nanswer=t0+n2"
SAMPLE = "n0=10\nn1=5\nn2=2\nt0=n0/n1\nanswer=t0*3"


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(partway: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command line in this process."""
    monkeypatch.setenv("COLUMNS", "160")

    def run_with(*words: object, text: bytes = b"") -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        return subprocess.CompletedProcess(words, *partway(*words))

    return run_with


def start(*words: str, text: bytes) -> subprocess.CompletedProcess[bytes]:
    """A process of its own: its standard output refuses what cannot be encoded, its switches end with it."""
    command = [sys.executable, "-m", "partway", *words]
    return subprocess.run(
        command, input=text, capture_output=True, timeout=60, env={**os.environ, "COLUMNS": "160"}
    )


def test_a_table_shows_steps_values_states_and_the_failure(run: Run):
    result = run("trace", "-", text=b"x = 4\ny = x / 0\nanswer = y")
    shown = result.stdout
    assert result.returncode == 0
    assert "x = 4" in shown
    assert "{4}" in shown
    assert "error: ZeroDivisionError: division by zero" in shown
    assert "not run" in shown


def test_what_to_do_next_is_said_in_the_same_language(run: Run):
    told = run("trace", "-", "--language", "python-written", text=b"answer = 1").stderr
    assert told.endswith("next: partway trace - --against REFERENCE --language python-written\n")


def test_a_setting_of_another_language_names_that_language(run: Run):
    result = run("trace", "-", "--solution-end", "end_of_text", text=b"answer = 1")
    told = "solution_end is a setting of python-written, not of python; say --language python-written"
    assert result.stderr.startswith(f"partway: error: {told}")


def test_against_marks_the_last_state_in_common(run: Run, tmp_path: Path):
    (tmp_path / "reference.py").write_text(REFERENCE)
    (tmp_path / "sample.py").write_text(SAMPLE)
    result = run("trace", tmp_path / "sample.py", "--against", tmp_path / "reference.py")
    lines = result.stdout.splitlines()
    (meeting,) = [line.split("  ") for line in lines if " = " in line and line.split().count("=") == 3]
    assert [part.strip() for part in meeting if part.strip()] == [
        "n2 = 5", "{2, 5, 10}", "=", "n2 = 2", "{2, 5, 10}"
    ]  # fmt: skip
    assert any("{2, 2, 5, 10}" in line for line in lines), "states are sorted as numbers"
    assert "right up to step 3" in lines[-1]


def test_a_state_met_at_another_length_stands_in_one_row_and_80_columns_are_enough(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "reference.py").write_text("n0 = 100\nn1 = 20\nn2 = 3\nanswer = n0 + n1 + n2")
    (tmp_path / "sample.py").write_text("n0, n1 = (100, 20)\nn2 = 3\nanswer = n0 -\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    result = run("trace", "sample.py", "--against", "reference.py")
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    (row,) = [line for line in lines if "{3, 20, 100}" in line]
    assert row.count("{3, 20, 100}") == 2
    assert any("answer = n0 -" in line for line in lines), "what was written is shown"
    assert any("SyntaxError" in line for line in lines)


def test_json_is_one_object_per_solution(run: Run, tmp_path: Path):
    (tmp_path / "reference.py").write_text(REFERENCE)
    (tmp_path / "sample.py").write_text(SAMPLE)
    files = [tmp_path / "sample.py", tmp_path / "reference.py"]
    result = run("trace", *files, "--against", tmp_path / "reference.py", "--json")
    sample, same = map(json.loads, result.stdout.splitlines())
    assert (sample["matching_length"], sample["is_correct"]) == (3, False)
    assert sample["steps"][3] == {"step": "t0 = n0 / n1", "set": {"t0": "2.0"}, "state": "10, 2, 2, 5"}
    assert same["is_correct"] is True


def test_a_function_that_returns_is_looked_into_when_asked(run: Run):
    written = b"def solution():\n    n0 = 3\n    return n0 * 2"
    result = run("trace", "-", "--language", "python-written", "--json", text=written)
    found = json.loads(result.stdout)
    assert [step["state"] for step in found["steps"]] == ["3", "3, 6"]
    assert (found["answer"], result.stderr) == ("6", "")
    assert "no answer" in run("trace", "-", text=written).stdout


def test_general_programs_go_through_the_workers(run: Run):
    result = run("trace", "-", "--json", text=b"x = [1, 2]\nfor i in x:\n    y = i\nanswer = len(x)")
    found = json.loads(result.stdout)
    assert [step["state"] for step in found["steps"]] == ["[1, 2]", "2, 2, [1, 2]", "2, 2, 2, [1, 2]"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "standard input: empty"),
        (b"\n  \n", "standard input: empty"),
        (b"\xff\xfex = 1", "standard input: byte 0 is not UTF-8"),
        (b"x = 1\n" * 1_700_000, "standard input: more than 1,000,000 bytes"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_1(run: Run, text: bytes, message: str):
    result = run("trace", "-", text=text)
    assert result.returncode == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_missing_file_is_one_line_and_exit_code_1(run: Run, tmp_path: Path):
    result = run("trace", tmp_path / "nothing.py")
    assert result.returncode == 1
    assert result.stderr.endswith("nothing.py: No such file or directory\n")


@pytest.mark.parametrize("text", [b"x = 1\x00\n", b"x = " + b"(" * 5000, b"x = " + b"[" * 150 + b"]" * 150])
def test_monstrous_programs_are_recorded_failures_not_tracebacks(text: bytes):
    result = start("trace", "-", "--json", text=text)
    assert result.returncode == 0
    assert b"Traceback" not in result.stderr
    assert (
        json.loads(result.stdout)["failure"] is None
        or json.loads(result.stdout)["failure"]["kind"] == "error"
    )


def test_a_misspelled_command_gets_a_suggestion(run: Run):
    result = run("trce", "x.py")
    assert result.returncode == 2
    assert "did you mean 'trace'?" in result.stderr


def test_help_is_quick_and_has_examples(run: Run):
    assert "Examples:" in run("trace", "--help").stdout
    assert run("--help").returncode == 0


@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.parametrize(
    "text",
    [
        rb"raise ValueError('\x1b[2J\x1b]0;title\x07\ud800')",
        rb"x = ['\x1b[2J', '\ud800']" + b"\nanswer = x[0]",
        rb"class A:" + b"\n    pass\n" + rb"x = {'\x1b]8;;http://a\x07': A(), b'\x9b31m': chr(155)}",
        b"x = 1\ny = '\x1b[2J",
        "x = 1\ny = \u202e2".encode(),
    ],
)
def test_nothing_a_program_says_reaches_the_terminal_as_a_command(text: bytes, options: list[str]):
    result = start("trace", "-", *options, text=text)
    assert result.returncode == 0, result.stderr
    assert not set(result.stdout.decode()) & set("\x1b\x07\x9b\u202e")


def test_the_switch_for_weak_sandboxes_may_stand_behind_any_command():
    assert start("trace", "-", "--allow-weak-sandbox", text=b"x = [1]").returncode == 0


@pytest.mark.parametrize("text", [b"x = 1\n" * 150_000, b"if x:\n" + b"  y = (\n" * 1800])
def test_text_that_is_no_program_is_shown_in_part(run: Run, text: bytes):
    result = run("trace", "-", text=text)
    assert result.returncode == 0
    assert len(result.stdout) < 100_000


def test_a_table_has_so_many_rows(run: Run, tmp_path: Path):
    reference = tmp_path / "reference.py"
    reference.write_text("a0 = 1\nanswer = 1")
    text = "".join(f"a{n} = 1\n" for n in range(1500)).encode()
    for options in ((), ("--against", reference)):
        result = run("trace", "-", *options, text=text)
        assert result.returncode == 0
        assert "and 1,300 more steps" in result.stdout
