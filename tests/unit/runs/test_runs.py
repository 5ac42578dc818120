"""The run directory: what is written is read back, and what came after a checkpoint can be cut."""

import json
import os
import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from partway import evaluation
from partway.buffer import SolutionBuffer, Verdict
from partway.errors import ProblemError, RunError
from partway.evaluation import Evaluation, EvaluationPlan, ProblemResult
from partway.evaluation.samples import whole
from partway.language import PythonLanguage
from partway.problem import Problem
from partway.problems import load_problems
from partway.runs import Run, json_line, read_json, read_rows
from partway.runs.checkpoints import seal
from partway.sample import Sample
from partway.solution import Solution

OIL = Problem("oil", "10 ml for each of 2 wheels?", 20, "n0 = 10\nanswer = n0 * 2", {"split": "train"})
WEAK = Problem("weak", "What is 3 + 4?", 7)
RIGHT = ProblemResult(
    "oil", (evaluation.Judged(whole("oil", "answer = 20\n", 2), True, "passed", True, "20"),)
)
EVALUATION = Evaluation.of((RIGHT,), EvaluationPlan(samples=2, ks=(2,), pass1_samples=0))


def sample(step: int, verdict: Verdict = Verdict.INCORRECT) -> Sample:
    return Sample("oil", "", "answer = 1\n", 1, True, log_prob=-1.5, step=step, verdict=verdict)


@pytest.fixture
def run(tmp_path):
    run = Run(tmp_path / "run")
    run.write_config({"seed": 3, "learning_rate": 1e-4})
    return run


def test_a_directory_without_a_run_is_refused_by_name(tmp_path):
    with pytest.raises(RunError, match=r"config\.yaml is missing"):
        Run.at(tmp_path)


def test_settings_and_problems_come_back_as_written(run):
    run.write_problems("train", [OIL, WEAK])
    assert Run.at(run.directory).config == {"seed": 3, "learning_rate": 1e-4}
    assert run.problems() == [OIL, WEAK]
    assert run.problems()[0].meta == {"split": "train"}
    assert run.problems("dev") == []


def test_a_text_answer_stays_text_for_the_run_and_for_the_reader_of_files(run):
    bus = Problem("bus", "Which bus, as text?", "72", "n0 = 72\nanswer = str(n0)")
    run.write_problems("dev", [bus])
    assert run.problems("dev") == load_problems(run.problems_file("dev")) == [bus]


def test_references_are_read_up_to_the_runs_own_answer(run):
    run.write_config({"answer_variable": "result"})
    steps = ("answer = 3", "n1 = 2", "result = answer * n1")
    run.write_problems("train", [Problem("p", "Twice 3?", 6, Solution(steps))])
    (problem,) = run.problems()
    assert problem.reference == Solution(steps)
    assert Run.at(run.directory).language == PythonLanguage("result")


def test_exact_numbers_are_written_as_numbers_and_what_json_cannot_hold_is_refused(run):
    run.write_problems(
        "train", [Problem("half", "1 / 2?", Fraction(1, 2)), Problem("q", "3 / 4?", Decimal("0.75"))]
    )
    assert [problem.answer for problem in run.problems()] == [0.5, 0.75]
    with pytest.raises(ProblemError, match="'set' cannot be written as JSON: set is not a plain value"):
        run.write_problems("train", [Problem("set", "Which?", {1, 2})])


def test_floats_of_metrics_survive_exactly(run):
    run.append_metrics({"step": 1, "loss": 0.1 + 0.2}, {"step": 1, "seconds": 1.0})
    assert run.metrics() == [{"step": 1, "loss": 0.1 + 0.2}]
    assert run.timings() == [{"step": 1, "seconds": 1.0}]


def test_numbers_json_cannot_write_become_null():
    assert json.loads(json_line({"loss": float("nan"), "grad_norm": float("inf")})) == {
        "loss": None,
        "grad_norm": None,
    }


def test_samples_are_kept_a_thousand_steps_to_a_file(run):
    for step in (1, 1000, 1001, 12_345):
        run.append_samples([sample(step), sample(step, Verdict.TOO_LONG)])
    names = sorted(path.name for path in (run.directory / "samples").iterdir())
    assert names == ["00000001.jsonl", "00001001.jsonl", "00012001.jsonl"]
    assert [s.step for s in run.samples()] == [1, 1, 1000, 1000, 1001, 1001, 12_345, 12_345]
    assert next(run.samples()) == sample(1)


def test_evaluations_are_found_by_step_in_numeric_order(run):
    for step in (1000, 200):
        run.write_evaluation(step, EVALUATION)
    assert list(run.evaluations()) == [200, 1000]
    assert run.evaluations()[200]["step"] == 200
    assert run.evaluations()[200]["metrics"]["pass@2"]["value"] == 1.0
    (row,) = run.evaluation_rows(1000)
    assert (row["task_id"], row["passed"], row["count"]) == ("oil", True, 2)


def test_buffers_come_from_the_newest_checkpoint_until_there_is_a_final_model(run):
    run.write_problems("train", [OIL, WEAK])
    with pytest.raises(RunError, match="no checkpoint was written yet"):
        run.buffers()
    for name in ("checkpoint-9", "checkpoint-10", "final"):
        directory = run.directory / name
        directory.mkdir()
        rows = [{"id": p.id, **SolutionBuffer.seeded(p).to_json()} for p in (OIL, WEAK)]
        rows[1]["max_length"] = len(name)
        (directory / "buffer.jsonl").write_text("".join(map(json_line, rows)))
        seal(directory)
        assert run.buffers()["weak"].max_length == len(name)
    assert list(run.checkpoints()) == [9, 10]
    assert run.buffers()["oil"].fully_correct == (OIL.reference,)


def test_cutting_restores_every_growing_file_to_the_byte(run):
    run.append_metrics({"step": 1}, {"step": 1})
    run.append_samples([sample(1)])
    run.write_evaluation(1, EVALUATION)
    positions = run.positions()
    before = {path: path.read_bytes() for path in run.directory.rglob("*") if path.is_file()}
    run.append_metrics({"step": 2}, {"step": 2})
    run.append_samples([sample(2)])
    run.append_samples([sample(1001)])
    run.write_evaluation(2, EVALUATION)
    run.cut(1, positions)
    assert {path: path.read_bytes() for path in run.directory.rglob("*") if path.is_file()} == before


def test_of_a_file_that_lost_lines_the_whole_rows_up_to_the_step_stay_and_it_is_named(run):
    for step in (1, 2):
        run.append_metrics({"step": step}, {"step": step})
        run.append_samples([sample(step)])
    positions = run.positions()
    (run.directory / "timings.jsonl").unlink()
    os.truncate(run.directory / "metrics.jsonl", len('{"step": 1}\n{"st'))
    assert run.cut(2, positions) == ["metrics.jsonl", "timings.jsonl"]
    run.append_metrics({"step": 3}, {"step": 3})
    assert run.metrics() == [{"step": 1}, {"step": 3}], "no line is glued to half a line"
    assert [one.step for one in run.samples()] == [1, 2]


def test_rows_of_later_steps_in_a_file_that_was_begun_anew_are_cut(run):
    run.append_metrics({"step": 1, "loss": 0.123456789}, {"step": 1})
    positions = run.positions()
    (run.directory / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2}\n')
    assert run.cut(1, positions) == ["metrics.jsonl"]
    assert run.metrics() == [{"step": 1}]


def test_a_line_being_written_is_not_read(run):
    (run.directory / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2')
    assert run.metrics() == [{"step": 1}]


def test_a_damaged_line_is_named(run):
    (run.directory / "metrics.jsonl").write_text('{"step": 1}\nnonsense\n')
    with pytest.raises(RunError, match=r"metrics\.jsonl, line 2: not JSON"):
        run.metrics()


@pytest.mark.parametrize(
    "line", [b"[1]", b"5", b"[" * 100_000, b'"\xff"'], ids=["list", "number", "deep", "bytes"]
)
def test_a_line_that_is_no_object_is_named(run, line):
    (run.directory / "metrics.jsonl").write_bytes(b'{"step": 1}\n' + line + b"\n")
    with pytest.raises(
        RunError, match=r"metrics\.jsonl, line 2: (not JSON|not UTF-8|expected a JSON object)"
    ):
        run.metrics()


@pytest.mark.parametrize("content", ["[1]", "5", "{", "[" * 100_000, "null"])
def test_settings_and_environment_of_another_kind_are_refused(run, content):
    (run.directory / "environment.json").write_text(content)
    with pytest.raises(RunError, match=r"environment\.json: .*; was it changed or only half copied\?"):
        _ = run.environment
    (run.directory / "config.yaml").write_text("- seed: 1\n")
    with pytest.raises(RunError, match=r"config\.yaml: expected names with values, found a list"):
        _ = run.config


def test_a_line_separator_inside_a_question_is_no_line_end(run):
    problem = Problem("ls", "first\u2028second", 1)
    run.write_problems("train", [problem])
    assert run.problems() == [problem]


SAMPLE = {"step": 1, "problem": "a", "prefix": "", "completion": "x", "count": 1, "finished": True}
SAMPLE |= {"verdict": "incorrect", "log_prob": None, "weights": 0}
KEPT = {"kind": "fully_correct", "steps": ["answer = 1"], "states": ["1"], "found": 0}
JUDGED = {"task_id": "a", "completion": "x", "passed": True}
SUMMARY = {"problems": 1, "samples": 1, "pass1_samples": 0, "ks": [1], "answer_variable": "answer"}
BUFFER = {"id": "a", "rules": {}, "max_length": 1, "solutions": [KEPT]}


def test_whatever_a_model_writes_is_read_again(tmp_path):
    path = tmp_path / "samples" / "00000001.jsonl"
    path.parent.mkdir()
    written = SAMPLE | {"completion": "é\0\x1b\u2028\ufffd", "prefix": "n0 = '\U0001f600'\n"}
    path.write_text(f"{json.dumps(written)}\n")
    assert list(read_rows(path)) == [written]


@pytest.mark.parametrize(
    ("name", "row", "complaint"),
    [
        ("samples/00000001.jsonl", {"step": 1}, "no 'problem'"),
        ("final/buffer.jsonl", {"id": "a"}, "no 'rules'"),
        ("problems/train.jsonl", {"id": "a", "question": "?"}, "no 'answer'"),
        ("evaluations/step-1.pass1.jsonl", {"task_id": "a", "completion": "x"}, "no 'passed'"),
    ],
)
def test_a_row_that_lacks_a_key_is_named_with_its_line(tmp_path, name, row, complaint):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    good = {"samples": SAMPLE, "final": BUFFER, "problems": {"id": "b", "question": "?", "answer": 1}}
    good["evaluations"] = JUDGED
    path.write_text(f"{json.dumps(good.get(path.parent.name, {'step': 1}))}\n{json.dumps(row)}\n")
    with pytest.raises(RunError, match=rf"{path.name}, line 2: {re.escape(complaint)}.*; was it changed\?"):
        list(read_rows(path))


def test_a_summary_that_lacks_a_key_is_named(tmp_path):
    path = tmp_path / "evaluations" / "step-1.json"
    path.parent.mkdir()
    path.write_text("{}")
    with pytest.raises(RunError, match=r"step-1\.json: no 'problems'.*half copied\?"):
        read_json(path)


@pytest.mark.parametrize(
    ("name", "row", "read"),
    [
        ("samples/00000001.jsonl", SAMPLE | {"verdict": "fine"}, lambda run: [*run.samples()]),
        ("problems/train.jsonl", {"id": "a", "question": "?", "answer": 1, "solution": 5}, Run.problems),
        ("final/buffer.jsonl", BUFFER | {"solutions": [5]}, Run.buffers),
    ],
)
def test_a_row_that_nothing_can_be_made_of_is_one_line_that_names_the_file(tmp_path, name, row, read):
    run = Run(tmp_path)
    run.write_problems("train", [Problem("a", "?", 1)])
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(f"{json.dumps(row)}\n")
    with pytest.raises(RunError, match=rf"{name}: not as it was written .*; was it changed\?"):
        read(run)


def test_samples_of_a_newer_version_are_read_as_far_as_they_are_known(tmp_path):
    run = Run(tmp_path)
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "00000001.jsonl").write_text(json.dumps(SAMPLE | {"engine": "new"}) + "\n")
    assert [sample.verdict.value for sample in run.samples()] == ["incorrect"]


def test_a_self_sample_begins_with_the_steps_it_went_on_from():
    drawn = Sample("p", "n0 = 1\nn1 = 2", "answer = n0 + n1\n", 1, True, step=1, verdict=Verdict.INCORRECT)
    assert drawn.text == "n0 = 1\nn1 = 2\nanswer = n0 + n1\n"
    assert replace(drawn, prefix="").text == "answer = n0 + n1\n"
