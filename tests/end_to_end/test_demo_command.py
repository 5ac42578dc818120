"""`partway demo`: all arms from one start, one table, a page; run again it has nothing to do."""

import io
import json
from pathlib import Path
from queue import Queue

import pytest
from click.testing import CliRunner
from rich.console import Console

from partway import demo
from partway.cli import app
from partway.cli.demo_arms import Bars
from partway.demo import FCS_PCS, MLE, Experiment, Stage
from partway.errors import RunError
from partway.runs import Run

SMALL = Experiment(
    arms=(MLE, FCS_PCS), train=8, dev=4, test=6, steps=4, eval_steps=2, dev_samples=2, test_samples=10
)


def run_demo(directory, *words):
    return CliRunner().invoke(app, ["demo", "--out", str(directory), *words], catch_exceptions=False)


@pytest.fixture(scope="module")
def small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "experiment_named", lambda name: SMALL)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory, small):
    directory = tmp_path_factory.mktemp("demo")
    return directory, run_demo(directory, "--jobs", "2")


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
    page = result.stdout.split("The page: ")[1].strip()
    assert Path(page).read_text().startswith("<!doctype html>")


def test_both_arms_have_the_same_problems_and_seed(finished):
    directory, _ = finished
    first, second = (Run.at(directory / name) for name in ("mle-seed0", "fcs-pcs-seed0"))
    assert [p.id for p in first.problems()] == [p.id for p in second.problems()]
    different = {key for key in first.config if first.config[key] != second.config[key]}
    assert different == {"output_dir", "self_sampling", "objective"}


def test_again_nothing_is_trained_and_the_numbers_are_the_same(finished):
    directory, _ = finished
    before = (directory / "mle-seed0" / "final" / "model.safetensors").stat().st_mtime_ns
    numbers = json.loads(run_demo(directory, "--jobs", "1", "--json").stdout)
    assert (directory / "mle-seed0" / "final" / "model.safetensors").stat().st_mtime_ns == before
    arm = numbers["arms"]["FCS+PCS"]
    assert arm["metrics"]["pass@10"]["low"] <= arm["metrics"]["pass@10"]["value"]
    assert arm["minus_mle"]["pass@10"]["value"] == pytest.approx(
        arm["metrics"]["pass@10"]["value"] - numbers["arms"]["MLE"]["metrics"]["pass@10"]["value"]
    )
    assert arm["solutions_per_problem"]["fcs"] >= 1


def test_runs_of_another_size_are_not_taken_for_this_one(finished):
    directory, _ = finished
    with pytest.raises(RunError, match="made by a demo of another size; choose another --out"):
        demo.run_arm(Experiment(test=7), MLE, 0, directory, lambda stage: None)


def test_two_sizes_at_once_are_refused(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--quick", "--full", "--out", str(tmp_path)])
    assert result.exit_code != 0
    assert "exclude each other" in result.output


def test_problems_of_the_demo_are_not_those_of_pretraining():
    experiment = demo.experiment_named("quick")
    assert {split: len(problems) for split, problems in experiment.problems(3).items()} == {
        "train": experiment.train,
        "dev": experiment.dev,
        "test": experiment.test,
    }
    questions = [p.question for problems in experiment.problems(3).values() for p in problems]
    assert len(set(questions)) == len(questions)
    assert not any(demo._is_for_pretraining(p) for split in experiment.problems(3).values() for p in split)


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
