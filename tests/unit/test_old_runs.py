"""A run that version 0.1 wrote is still read by everything that reads runs.

Its answer variable is `result`, one reference assigns `answer` on the way, and some answers are text. The
weights are left out.
"""

import json
import shutil
from pathlib import Path

import pytest

from partway.buffer import Verdict
from partway.errors import RunError
from partway.evaluation import EvaluationPlan, compare, evaluate_into
from partway.execution import PythonPrograms
from partway.models.loading import model_directory
from partway.models.settings import SamplingSettings
from partway.problem import Problem
from partway.reports import write_report
from partway.reports.buffers import export_rows, summarize_buffers
from partway.reports.explorer.explorer import Explorer
from partway.reports.summaries import summarize
from partway.runs import Run
from partway.runs.checkpoints import RunProgress
from partway.runs.digests import problems_digest
from partway.solution import Solution
from partway.training import SelfSamplingConfig
from partway.training.resuming import check_same_run

OLD = Path(__file__).parent.parent / "runs" / "finished-0.1"


def problem(name: str, question: str, answer: object, steps: str) -> Problem:
    return Problem(name, question, answer, Solution.parse(steps, "result"))


TRAIN = [
    problem(
        "apples",
        "Tom has 3 apples and buys 4 more. How many has he?",
        7,
        "n0 = 3\nn1 = 4\nresult = n0 + n1",
    ),
    problem(
        "steps",
        "Ann answers 3 of 5 questions twice. How many answers?",
        6,
        "answer = 3\nn1 = 2\nresult = answer * n1",
    ),
    problem("text", "Which number is written on the bus, as text?", "72", "n0 = 72\nresult = str(n0)"),
    Problem("weak", "What is 3 + 4?", 7),
]
DEV = [
    problem("eggs", "Tom eats 2 of 6 eggs. How many are left?", 4, "n0 = 6\nn1 = 2\nresult = n0 - n1"),
    problem("bus", "Which bus goes to the sea, as text?", "72", "n0 = 72\nresult = str(n0)"),
]


@pytest.fixture
def run(tmp_path) -> Run:
    shutil.copytree(OLD, tmp_path / "old")
    return Run.at(tmp_path / "old")


def test_its_lines_samples_and_evaluations_are_read(run):
    assert run.is_finished
    assert len(run.metrics()) == len(run.timings()) == 7
    assert sum(sample.count for sample in run.samples()) == 32
    assert {sample.verdict for sample in run.samples()} >= {Verdict.NEW_FULLY_CORRECT, Verdict.INCORRECT}
    assert list(run.evaluations()) == [2, 4]
    assert [row["task_id"] for row in run.evaluation_rows(4)] == ["eggs"] * 4 + ["bus"] * 3
    assert RunProgress.read(run.checkpoints()[4]).step == 4


def test_its_problems_are_those_it_was_given(run):
    assert run.problems("train") == TRAIN
    assert run.problems("dev") == DEV


def test_its_buffers_hold_what_they_held(run):
    kept = {id: len(buffer.fully_correct) for id, buffer in run.buffers().items()}
    assert kept == {"apples": 3, "steps": 2, "text": 2, "weak": 1}
    assert summarize_buffers(run).solutions == {"fully_correct": 8, "partially_correct": 0}
    assert summarize_buffers(run).references == 3
    assert len(list(export_rows(run))) == 8


def test_it_can_be_resumed_with_its_problems(run):
    data = run.environment["data"]
    assert problems_digest(TRAIN) == data["train"]["sha256"]
    assert problems_digest(DEV) == data["dev"]["sha256"]


def test_it_can_be_resumed_with_its_settings_but_not_with_others(run):
    settings = SelfSamplingConfig(**run.config).settings
    assert settings.keys() > run.config.keys()  # there are settings that it does not know
    check_same_run(run, settings, run.environment)
    with pytest.raises(RunError, match="objective was 'mle_aug', is 'mml'; undo"):
        check_same_run(run, {**settings, "objective": "mml"}, run.environment)
    with pytest.raises(RunError, match="was asked plainly, is asked through its chat template"):
        check_same_run(run, settings, {**run.environment, "chat_template": True})


def test_its_model_is_found(run):
    assert model_directory(run.directory) == run.directory / "final"
    shutil.rmtree(run.directory / "final")
    assert model_directory(run.directory) == run.directory / "checkpoint-2"  # the best one


def test_its_finished_evaluation_is_shown_and_not_done_again(run):
    path = run.directory / "evaluations" / "test.json"
    settings = SamplingSettings(temperature=0.8, max_completion_length=12)
    plan = EvaluationPlan(samples=8, settings=settings, ks=(1, 8), programs=PythonPrograms("result"))
    assert evaluate_into(path, None, DEV, plan, model="scripted") == json.loads(path.read_text())
    assert compare(path, path).difference["pass@8"].value == 0.0


def test_it_can_be_reported(run, tmp_path, unrendered):
    summary = summarize(run)
    assert summary.results["test"].metrics["pass@8"].value == 1.0
    assert summary.missing == ()
    assert "pass@8" in write_report([run], tmp_path / "report").read_text(encoding="utf-8")


def test_it_can_be_explored(run):
    explorer = Explorer(run)
    explorer.check()
    views = {entry.listed.id: explorer.problem(entry.key) for entry in explorer.index.entries}
    assert [len(solution["steps"]) for solution in views["steps"]["solutions"]] == [3, 3]
    assert views["text"]["solutions"][0]["is_right"]
    assert views["bus"]["evaluation"]["passed"] == 2
    forbidden = [group for group in views["eggs"]["evaluation"]["groups"] if group.get("failure")]
    assert {group["failure"]["kind"] for group in forbidden} == {"error", "forbidden"}
