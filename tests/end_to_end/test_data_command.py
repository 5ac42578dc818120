"""`partway data` as a user would call it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from partway import load_problems, trace

OPTIONS = "a ) 6 , b ) 7 , c ) none"


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(partway: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command line in this process."""
    monkeypatch.setenv("COLUMNS", "160")
    return lambda *words: subprocess.CompletedProcess(words, *partway(*words))


@pytest.fixture
def mathqa_source(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    source.mkdir()

    def rows(count: int, split: str) -> list[dict[str, Any]]:
        formulas = ["multiply(n0,n1)|", "add(n0,n1)|"]
        return [
            {
                "Problem": f"the {split} number {'very ' * index}long : 2 and 3",
                "options": OPTIONS,
                "correct": "a",
                "linear_formula": formulas[index % 5 == 4],
                "category": "general",
            }
            for index in range(count)
        ]

    (source / "train.json").write_text(json.dumps(rows(25, "train")))
    (source / "dev.json").write_text(json.dumps(rows(10, "dev")))
    (source / "test.json").write_text(json.dumps(rows(5, "dev")))
    return source


def test_mathqa_writes_three_files_and_says_what_was_left_out(
    run: Run, mathqa_source: Path, tmp_path: Path
) -> None:
    out, rejects = tmp_path / "deep" / "out", tmp_path / "rejects.jsonl"
    result = run("data", "mathqa", "--source", mathqa_source, "--out", out, "--rejects", rejects)
    assert result.returncode == 0, result.stderr
    assert "converting MathQA: 40 of 40 rows" in result.stderr
    assert "result is not the declared answer" in result.stdout
    assert sorted(path.name for path in out.iterdir()) == ["dev.jsonl", "test.jsonl", "train.jsonl"]
    train = load_problems(out / "train.jsonl")
    assert len(train) == 20
    assert train[0].question == "the train number long : 2 and 3 n0 = 2.0 n1 = 3.0"
    assert train[0].reference is not None
    assert trace(train[0].reference).answer == train[0].answer == 6
    left_out = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert len(left_out) == 8
    assert left_out[0].keys() == {"split", "row", "reason", "detail", "record"}
    assert (left_out[0]["split"], left_out[0]["row"]) == ("train", 4)


def test_gsm8k_is_counted_as_json_too(run: Run, tmp_path: Path) -> None:
    row = {
        "question": "Ann has 48 clips and gets half as many. How many now?",
        "answer": "Half are 48/2 = <<48/2=24>>24.\nTogether 48+24 = <<48+24=72>>72.\n#### 72",
    }
    for name in ("train.jsonl", "test.jsonl"):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for _ in range(5)))
    result = run("-q", "data", "gsm8k", "--source", tmp_path, "--out", tmp_path / "out", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    assert isinstance(json.loads(result.stdout), dict)
    assert len(load_problems(tmp_path / "out" / "train.jsonl")) == 4


def test_json_has_the_counts_and_quiet_is_quiet(run: Run, mathqa_source: Path, tmp_path: Path) -> None:
    result = run("-q", "data", "mathqa", "--source", mathqa_source, "--out", tmp_path / "out", "--json")
    assert result.stderr == ""
    counted = json.loads(result.stdout)
    assert counted["problems"] == counted["with_reference"] == {"train": 20, "dev": 8, "test": 4}
    assert counted["without_reference"]["dev"] == {"result is not the declared answer": 2}
    assert counted["notes"]["template_overlap"]["test"] == {"train": 0, "dev": 4}


def test_filtered_mathqa_has_no_near_copies(run: Run, mathqa_source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run("data", "mathqa", "--source", mathqa_source, "--out", out, "--filtered", "--json")
    assert result.returncode == 0, result.stderr
    kept = load_problems(out / "train.jsonl")
    lengths = [problem.question.count("very") for problem in kept if "train" in problem.question]
    assert lengths == [0, 3, 6, 10, 13, 16, 20, 23]


def test_a_split_index_needs_filtered(run: Run, mathqa_source: Path, tmp_path: Path) -> None:
    index = tmp_path / "index.json"
    index.write_text('{"train": [], "dev": []}')
    arguments = (
        "data",
        "mathqa",
        "--source",
        mathqa_source,
        "--out",
        tmp_path / "out",
        "--split-index",
        index,
    )
    result = run(*arguments)
    assert (result.returncode, "--split-index needs --filtered" in result.stderr) == (2, True)
    result = run(*arguments, "--filtered")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("partway: error: the split index needs 2822 dev rows")


def test_gsm8k_from_its_files(run: Run, tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    row = {
        "question": "Natalia sold 48 clips, then half as many. How many?",
        "answer": "48/2 = <<48/2=24>>24",
    }
    row["answer"] += "\nAll in all 48+24 = <<48+24=72>>72.\n#### 72"
    (source / "train.jsonl").write_text((json.dumps(row) + "\n") * 5)
    (source / "test.jsonl").write_text(json.dumps({**row, "answer": "Who knows?\n#### 5"}) + "\n")
    result = run("data", "gsm8k", "--source", source, "--out", out, "--json")
    assert result.returncode == 0, result.stderr
    counted = json.loads(result.stdout)
    assert counted["problems"] == {"train": 4, "dev": 1, "test": 1}
    assert counted["with_reference"] == {"train": 4, "dev": 1, "test": 0}
    assert load_problems(out / "train.jsonl")[0].answer == 72
    assert load_problems(out / "test.jsonl")[0].reference is None


def test_storyproblems_are_the_same_bytes_for_the_same_seed(run: Run, tmp_path: Path) -> None:
    counts = ("--train", 20, "--dev", 5, "--test", 5)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        result = run("data", "storyproblems", *counts, "--seed", seed, "--out", tmp_path / name)
        assert result.returncode == 0, result.stderr
    a, b, c = ((tmp_path / name / "train.jsonl").read_bytes() for name in "abc")
    assert a == b != c
    assert len(load_problems(tmp_path / "a" / "train.jsonl")) == 20


def test_check_reports_every_bad_row_and_exits_with_1(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "problems.jsonl"
    rows = [
        {"question": "1 + 1?", "answer": 2, "solution": "answer = 1 + 1"},
        {"question": "", "answer": float("nan")},
        {"question": "1 + 1?", "answer": 2, "solution": "answer = 3"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{\n")
    result = run("data", "check", path)
    assert result.returncode == 1
    assert result.stdout.splitlines() == [
        f"{path}:2: question: the question is empty",
        f"{path}:2: answer: nan is not a number to compare with",
        f"{path}:3: solution: gives 3, but the answer is 2",
        f"{path}:4: row: not JSON: Expecting property name enclosed in double quotes at column 2",
    ]
    assert result.stderr == f"partway: error: {path}: 3 bad rows beside 1 good\n"
    as_json = run("data", "check", path, "--json")
    assert as_json.returncode == 1
    assert [row["line"] for row in json.loads(as_json.stdout)["bad_rows"]] == [2, 2, 3, 4]


def test_check_of_a_good_file_counts_and_exits_with_0(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "problems.jsonl"
    path.write_text('{"question": "1 + 1?", "answer": 2}\n{"question": "2 + 1?", "solution": "answer = 3"}\n')
    result = run("data", "check", path)
    following = f"next: partway train --model_name_or_path MODEL --output_dir run --train_file {path}"
    assert (result.returncode, result.stderr) == (0, f"partway: {following}\n")
    mixed = "2 problems: 1 with a solution, 1 with the answer only; solved_share mixes them in each batch"
    assert result.stdout == f"{path}: {mixed}\n"


def test_a_long_count_is_a_list_and_the_next_command_names_both_files(run: Run, tmp_path: Path) -> None:
    result = run("data", "storyproblems", "--train", 60, "--dev", 4, "--test", 4, "--out", tmp_path)
    assert result.stdout.count("\n") < 25, "not a line for each of fifty situations"
    assert "situations: " in result.stdout
    files = f"--train_file {tmp_path / 'train.jsonl'} --eval_file {tmp_path / 'dev.jsonl'}"
    assert result.stderr.endswith(f"{files}\n")


def test_what_is_wrong_with_every_row_is_told_once(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"task": "1 + 1?", "result": 2}\n' * 3)
    result = run("data", "check", path)
    (told,) = result.stdout.splitlines()
    assert told.startswith(f"{path}:1: columns: found the columns task, result; ")
    assert told.endswith(" (and 2 more rows)")


def test_the_next_command_takes_the_language_and_the_columns_of_this_one(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "pal.jsonl"
    row = {"ask": "3 by 2?", "goal": 6, "code": "def solution():\n    n = 3\n    return n * 2"}
    path.write_text(json.dumps(row))
    words = ["--columns", "question=ask,answer=goal,solution=code", "--language", "python-written"]
    result = run("data", "check", path, *words)
    assert result.stderr.endswith(f" --train_file {path} {' '.join(words)}\n")


def test_check_counts_system_turns(run: Run, tmp_path: Path) -> None:
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 + 1?"}]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"prompt": turns, "answer": 2, "solution": "answer = 1 + 1"}))
    assert "1 system turn not asked, but kept in meta" in run("data", "check", path).stderr


def test_check_says_loudly_that_there_is_no_reference_and_takes_named_columns(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "rows.tsv"
    path.write_text("ask\tgoal\tcode\n1 + 1?\t2\tanswer = 1 + 1\n")
    pairs = "question=ask,answer=goal"
    result = run("data", "check", path, "--columns", pairs)
    assert result.returncode == 0
    assert result.stderr.startswith(f"partway: {path}: of 1 problem NONE has a reference")
    assert "columns not used: code" in result.stderr
    better = run("data", "check", path, "--columns", f"{pairs},solution=code")
    assert (better.returncode, better.stderr.count("\n")) == (0, 1)
    assert better.stderr.startswith("partway: next: ")
    assert better.stdout.startswith(f"{path}: 1 problem, all with a solution: ")


def test_check_counts_and_shows_answers_that_are_text_although_they_begin_with_a_number(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "units.jsonl"
    rows = [
        {"question": "How many?", "answer": "7 apples"},
        {"question": "And how much?", "answer": "$5 each"},
        {"question": "Which fruit?", "answer": "apples"},
        {"question": "How many?", "answer": "1,000"},
        {"question": "Which one?", "answer": "2nd", "solution": "answer = '2nd'"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run("data", "check", path)
    assert result.returncode == 0
    assert result.stderr.startswith(f"partway: {path}: 2 of 5 answers begin with a number but are text")
    assert "'7 apples', '$5 each'; if the number" in result.stderr
    counts = json.loads(run("data", "check", path, "--json").stdout)
    assert counts["numbers_left_text"] == 2


def test_check_runs_the_tests_of_mbpp_if_told_to(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mbpp.jsonl"
    code = "def half(n):\n    return n / 2"
    path.write_text(json.dumps({"text": "Halve.", "code": code, "test_list": ["assert half(4) == 2"]}) + "\n")
    result = run("data", "check", path)
    assert result.returncode == 1
    assert "--language python-tests" in result.stdout
    assert run("data", "check", path, "--language", "python-tests").returncode == 0


def test_missing_files_are_named_with_where_they_come_from(run: Run, tmp_path: Path) -> None:
    result = run("data", "gsm8k", "--source", tmp_path, "--out", tmp_path / "out")
    assert result.returncode == 1
    assert result.stderr.startswith(
        f"partway: error: {tmp_path}: there is no train.jsonl; put train.jsonl and"
    )
    assert result.stderr.count("\n") == 1
    result = run("data", "mathqa", "--source", tmp_path / "absent", "--out", tmp_path / "out")
    assert "no such directory; put train.json or" in result.stderr


@pytest.mark.parametrize("name", ["gsm8k", "mathqa"])
def test_offline_the_error_says_which_files_to_put_where(tmp_path: Path, name: str) -> None:
    # A process of its own: the library reads these when it is imported.
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "partway", "data", name, "--out", str(tmp_path / "out")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert result.returncode == 1
    assert result.stderr.startswith("partway: error: cannot use ")
    assert "and test.json" in result.stderr
    assert "into a directory and pass it as --source" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kill_at", [1, 3, 5])
def test_a_killed_conversion_leaves_whole_files_only(
    run: Run, mathqa_source: Path, tmp_path: Path, kill_at: int
) -> None:
    out = tmp_path / "out"
    arguments = ["data", "mathqa", "--source", str(mathqa_source), "--out", str(out)]
    script = (
        "import os, signal, sys\n"
        "calls, fsync = [], os.fsync\n"
        "def kill(descriptor):\n"
        "    calls.append(descriptor)\n"
        f"    os.kill(os.getpid(), signal.SIGKILL) if len(calls) == {kill_at} else fsync(descriptor)\n"
        "os.fsync = kill\n"
        f"sys.argv = ['partway', *{arguments!r}]\n"
        "from partway.cli import main\n"
        "main()\n"
    )
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    visible = {path.name: len(load_problems(path)) for path in out.iterdir() if not path.name.startswith(".")}
    assert visible == dict([("train.jsonl", 20), ("dev.jsonl", 8)][: kill_at // 2])
    again = run(*arguments)
    assert again.returncode == 0
    assert len(load_problems(out / "test.jsonl")) == 4


def test_an_interrupted_conversion_leaves_nothing(mathqa_source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["data", "mathqa", "--source", str(mathqa_source), "--out", str(out)]
    script = (
        "import os, signal, sys\n"
        "os.fsync = lambda descriptor: signal.raise_signal(signal.SIGINT)\n"
        f"sys.argv = ['partway', *{arguments!r}]\n"
        "from partway.cli import main\n"
        "main()\n"
    )
    interrupted = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert interrupted.returncode == 130
    assert interrupted.stderr.endswith("partway: interrupted\n")
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("name", ["gsm8k", "mathqa", "storyproblems", "check"])
def test_every_help_has_examples(run: Run, name: str) -> None:
    result = run("data", name, "--help")
    assert result.returncode == 0
    assert f"  partway data {name} " in result.stdout
