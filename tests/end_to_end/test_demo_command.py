"""`partway demo`: a model from scratch, arms from it, one table, a page; again it has nothing to do."""

import io
import json
from dataclasses import replace
from pathlib import Path
from queue import Queue

import pytest
from click.testing import CliRunner
from report_cases import leave_unpainted
from rich.console import Console

from partway.arms.arms import load_arms
from partway.arms.experiment import Experiment
from partway.arms.running import run_arm
from partway.arms.side_by_side import Bars, cells_of
from partway.arms.trials import Stage
from partway.cli import app
from partway.demo import sizes
from partway.demo.commands import shown_before
from partway.demo.sizes import base_model, experiment_named
from partway.demo.stories import is_for_pretraining
from partway.demo.storyproblems import generate_problems
from partway.errors import RunError
from partway.runs import Run

ARMS = load_arms(["mle", "fcs+pcs"])
SIZES = {"dev": 4, "test": 6, "batch_size": 8, "steps": 4, "eval_steps": 2, "dev_samples": 2}
SMALL = Experiment(ARMS, train=8, test_samples=10, **SIZES)
FEW = Experiment(
    load_arms(["mle", "fcs+pcs", "base", "chance"]), train=24, references=6, test_samples=5, **SIZES
)


def run_demo(directory, *words):
    return CliRunner().invoke(app, ["demo", "--out", str(directory), *words], catch_exceptions=False)


@pytest.fixture(scope="module")
def small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizes, "experiment_named", {"paper": SMALL, "normal": FEW}.__getitem__)
        patch.setattr(sizes, "base_model", lambda directory, quiet: "tiny-storyproblems")
        leave_unpainted(patch)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory, small):
    directory = tmp_path_factory.mktemp("demo")
    return directory, run_demo(directory, "--paper", "--jobs", "1")


@pytest.fixture
def without_processes(monkeypatch):
    """Runs the arms in this process, one after the other."""

    def run_arms(experiment, directory, jobs, quiet):
        cells = cells_of(experiment)
        return [run_arm(experiment, *cell, directory, lambda stage: None) for cell in cells]

    monkeypatch.setattr("partway.arms.side_by_side.run_arms", run_arms)


def test_both_arms_are_trained_and_measured(finished):
    directory, result = finished
    assert result.exit_code == 0, result.output
    assert "MLE, seed 0, training: 4 of 4" in result.stderr
    assert "FCS+PCS, seed 0, measuring: 66 of 66" in result.stderr
    assert "6 test problems, 10 samples" in result.stdout
    for name in ("mle-seed0", "fcs-pcs-seed0"):
        run = Run.at(directory / name)
        assert run.is_finished
        assert run.config["max_steps"] == 4
    page = result.stdout.split("The page: ")[1].splitlines()[0]
    assert Path(page).read_text().startswith("<!doctype html>")


def test_both_arms_have_the_same_problems_and_seed(finished):
    directory, _ = finished
    first, second = (Run.at(directory / name) for name in ("mle-seed0", "fcs-pcs-seed0"))
    assert [p.id for p in first.problems()] == [p.id for p in second.problems()]
    different = {key for key in first.config if first.config[key] != second.config[key]}
    assert different == {"output_dir", "self_sampling", "objective"}


def test_again_nothing_is_trained_and_the_numbers_are_the_same(finished, without_processes):
    directory, _ = finished
    before = (directory / "mle-seed0" / "final" / "model.safetensors").stat().st_mtime_ns
    numbers = json.loads(run_demo(directory, "--paper", "--jobs", "1", "--json").stdout)
    assert (directory / "mle-seed0" / "final" / "model.safetensors").stat().st_mtime_ns == before
    mle, arm = (numbers["arms"][name]["tables"]["selected"] for name in ("mle", "fcs+pcs"))
    assert arm["metrics"]["pass@10"]["low"] <= arm["metrics"]["pass@10"]["value"]
    assert arm["minus_mle"]["pass@10"]["value"] == pytest.approx(
        arm["metrics"]["pass@10"]["value"] - mle["metrics"]["pass@10"]["value"]
    )
    assert numbers["arms"]["fcs+pcs"]["solutions_per_problem"]["fcs"] >= 1


def test_a_finished_demo_only_shows_its_table_again_unless_a_run_is_gone(finished, monkeypatch):
    directory, first = finished
    monkeypatch.setattr("partway.demo.commands.run_comparison", lambda *_, **__: pytest.fail("run again"))
    assert run_demo(directory, "--paper").stdout == first.stdout
    assert shown_before(replace(SMALL, seeds=(0, 1)), directory) is None, "other seeds are not there"
    monkeypatch.setattr(Run, "is_finished", False)
    assert shown_before(SMALL, directory) is None


def test_the_table_the_page_and_every_json_show_the_same_intervals(finished, without_processes, partway):
    directory, result = finished
    runs = [directory / "mle-seed0", directory / "fcs-pcs-seed0"]
    numbers = json.loads(run_demo(directory, "--paper", "--json").stdout)["arms"]
    report = json.loads(partway("report", *runs, "--out", directory / "again", "--json")[1])
    assert [setting["label"] for setting in report["settings"]] == ["MLE", "FCS+PCS"]
    page = (directory / "report" / "report.html").read_text()
    for arm, setting, run in zip(("mle", "fcs+pcs"), report["settings"], runs, strict=True):
        summary = json.loads((run / "evaluations" / "test.json").read_text())
        for name in ("pass@1", "pass@5", "pass@10", "unique"):
            shown = numbers[arm]["tables"]["selected"]["metrics"][name]
            assert shown == setting["metrics"][name] == summary["metrics"][name]
            low, high, value = (f"{100 * shown[end]:.1f}" for end in ("low", "high", "value"))
            assert f"<b>{value}</b> <small>{low} to {high}</small>" in page
            assert f"{100 * shown['low']:.0f}-{100 * shown['high']:.0f}" in result.stdout


def test_runs_of_another_size_are_not_taken_for_this_one(finished):
    directory, _ = finished
    with pytest.raises(RunError, match=r"made by a comparison with other settings .*; choose another --out"):
        run_arm(Experiment(ARMS), ARMS[0], 0, directory, lambda stage: None)
    for other in (replace(SMALL, test=7), replace(SMALL, test_samples=SMALL.test_samples - 1)):
        with pytest.raises(
            RunError, match="made by a comparison of other problems or another size; choose another --out"
        ):
            run_arm(other, ARMS[0], 0, directory, lambda stage: None)


def test_few_references_stand_between_floor_and_ceiling_and_one_problem_tells_how_it_was_solved(
    tmp_path, small, without_processes
):
    result = run_demo(tmp_path)
    assert result.exit_code == 0, result.output
    for words in ("before training", "chance, no model", "6 of 24 training problems keep theirs"):
        assert words in result.stdout
    assert "Nobody wrote a solution of it" in result.stdout
    assert "first found" in result.stdout
    page = (tmp_path / "comparison.html").read_text()
    assert "6 training problems with a written solution, 18 with an answer only." in page
    run = Run.at(tmp_path / "fcs-pcs-seed0")
    solved = sum(bool(b.fully_correct) and b.problem.reference is None for b in run.buffers().values())
    assert f"FCS+PCS found solutions of {solved} of those." in page
    assert "It first solved it at step" in page
    assert "◆ the first step that differs from the first solution" in page
    mle, fcs_pcs = (Run.at(tmp_path / f"{name}-seed0").config for name in ("mle", "fcs-pcs"))
    assert (mle["solved_share"], fcs_pcs["solved_share"]) == (1.0, 0.5)


def test_the_model_that_is_still_learning_is_made_once(tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "BASE_STEPS", 2)
    monkeypatch.setattr(sizes, "pretraining_problems", lambda drawn: generate_problems(40, seed=0))
    model = Path(base_model(tmp_path / "base", quiet=True))
    before = (model / "model.safetensors").stat().st_mtime_ns
    assert Run.at(tmp_path / "base").config["max_steps"] == 2
    assert base_model(tmp_path / "base", quiet=True) == str(model)
    assert (model / "model.safetensors").stat().st_mtime_ns == before


def test_two_sizes_at_once_are_refused(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--quick", "--full", "--out", str(tmp_path)])
    assert result.exit_code != 0
    assert "--full is a size of its own" in result.output


@pytest.mark.parametrize("size", ["normal", "quick", "paper", "paper-quick"])
def test_problems_of_the_demo_are_not_those_of_pretraining(size):
    experiment = experiment_named(size)
    splits = experiment.problems(3)
    sizes = {"train": experiment.train, "dev": experiment.dev, "test": experiment.test}
    assert {split: len(problems) for split, problems in splits.items()} == sizes
    problems = [problem for split in splits.values() for problem in split]
    assert len({problem.question for problem in problems}) == len(problems)
    assert not any(map(is_for_pretraining, problems))


def test_a_terminal_gets_a_bar_for_each_arm():
    news = Queue()
    bars = Bars(news, ["MLE, seed 0", "FCS, seed 0"], quiet=False)
    bars.console = Console(file=io.StringIO(), force_terminal=True, width=150)
    bars.progress.live.console = bars.console
    with bars:
        news.put(("FCS, seed 0", Stage("training", 3, 9, "loss 1.0")))
    task = bars.progress.tasks[1]
    assert (task.description, task.completed, task.total) == ("FCS, seed 0, training", 3, 9)
    assert not bars.progress.tasks[0].started


def test_bars_fit_whole_into_80_columns():
    labels, news = ["FCS+PCS, seed 0", "MLE, all references, seed 0"], Queue()
    bars = Bars(news, labels, quiet=False)
    bars.console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    bars.progress.live.console = bars.console
    told = "loss 10.783  64 problems solved  kept 0.05 fully + 0.00 partially correct per problem"
    with bars:
        for label in labels:
            news.put((label, Stage("training", 30, 300, told)))
    shown = bars.console.file.getvalue()
    assert "MLE, all references, seed 0, training" in shown
    assert "30/300  loss 10.783" in shown
    assert "\u2026" not in shown, "nothing is cut"


def test_the_demo_says_what_its_first_minute_is_for(tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO", "partway")
    monkeypatch.setattr("partway.demo.sizes.train", lambda *given, **settings: None)
    monkeypatch.setattr("partway.demo.sizes.pretraining_problems", lambda drawn: [])
    base_model(tmp_path / "base", quiet=False)
    assert "first a tiny model learns a little" in caplog.text
