"""`partway demo`: all arms from one start, one table, a page; run again it has nothing to do."""

import io
import json
from dataclasses import replace
from pathlib import Path
from queue import Queue

import pytest
from click.testing import CliRunner
from report_cases import leave_unpainted
from rich.console import Console

from partway.arms import Experiment, Stage, load_arms, run_arm
from partway.arms.side_by_side import Bars, cells_of
from partway.cli import app
from partway.demo import sizes
from partway.demo.stories import is_for_pretraining
from partway.demo.storyproblems import generate_problems
from partway.errors import RunError
from partway.problems import load_problems, write_problems
from partway.runs import Run

ARMS = load_arms(["mle", "fcs+pcs"])
SMALL = Experiment(
    ARMS, train=8, dev=4, test=6, batch_size=8, steps=4, eval_steps=2, dev_samples=2, test_samples=10
)


def run_demo(directory, *words):
    return CliRunner().invoke(app, ["demo", "--out", str(directory), *words], catch_exceptions=False)


@pytest.fixture(scope="module")
def small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizes, "experiment_named", lambda name: SMALL)
        leave_unpainted(patch)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory, small):
    directory = tmp_path_factory.mktemp("demo")
    return directory, run_demo(directory, "--jobs", "1")


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
    numbers = json.loads(run_demo(directory, "--jobs", "1", "--json").stdout)
    assert (directory / "mle-seed0" / "final" / "model.safetensors").stat().st_mtime_ns == before
    arm = numbers["arms"]["FCS+PCS"]
    assert arm["metrics"]["pass@10"]["low"] <= arm["metrics"]["pass@10"]["value"]
    assert arm["minus_mle"]["pass@10"]["value"] == pytest.approx(
        arm["metrics"]["pass@10"]["value"] - numbers["arms"]["MLE"]["metrics"]["pass@10"]["value"]
    )
    assert arm["solutions_per_problem"]["fcs"] >= 1


def test_the_table_the_page_and_every_json_show_the_same_intervals(finished, without_processes, partway):
    directory, result = finished
    runs = [directory / "mle-seed0", directory / "fcs-pcs-seed0"]
    numbers = json.loads(run_demo(directory, "--json").stdout)["arms"]
    report = json.loads(partway("report", *runs, "--out", directory / "again", "--json")[1])
    assert [setting["label"] for setting in report["settings"]] == ["MLE", "FCS+PCS + MLE-Aug"]
    page = (directory / "report" / "report.html").read_text()
    for arm, setting, run in zip(("MLE", "FCS+PCS"), report["settings"], runs, strict=True):
        summary = json.loads((run / "evaluations" / "test.json").read_text())
        for name in ("pass@1", "pass@5", "pass@10", "unique"):
            shown = numbers[arm]["metrics"][name]
            assert shown == setting["metrics"][name] == summary["metrics"][name]
            low, high, value = (f"{100 * shown[end]:.1f}" for end in ("low", "high", "value"))
            assert f"<b>{value}</b> <small>{low} to {high}</small>" in page
            assert f"{100 * shown['low']:.0f}-{100 * shown['high']:.0f}" in result.stdout


def test_runs_of_another_size_are_not_taken_for_this_one(finished):
    directory, _ = finished
    with pytest.raises(RunError, match=r"made by a comparison with other settings .*; choose another --out"):
        run_arm(Experiment(ARMS), ARMS[0], 0, directory, lambda stage: None)
    with pytest.raises(
        RunError, match="made by a comparison of other problems or another size; choose another --out"
    ):
        run_arm(replace(SMALL, test=7), ARMS[0], 0, directory, lambda stage: None)


@pytest.fixture
def own_problems(tmp_path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for seed, (split, count) in enumerate({"train": 12, "dev": 5, "test": 8}.items()):
        write_problems(folder / f"{split}.jsonl", generate_problems(count, seed=seed))
    return folder


def test_own_problems_and_model_take_the_place_of_the_built_in_ones(
    own_problems, tmp_path, small, without_processes, monkeypatch
):
    tiny = replace(SMALL, steps=1, eval_steps=1, dev_samples=1, test_samples=5, max_completion_length=20)
    monkeypatch.setattr(sizes, "experiment_named", lambda name: tiny)
    words = ["--data", own_problems, "--model", "tiny-storyproblems", "--jobs", "2", "--json"]
    result = run_demo(tmp_path / "demo", *map(str, words))
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["test_problems"] == 6
    run = Run.at(tmp_path / "demo" / "fcs-pcs-seed0")
    assert {p.id for p in run.problems()} < {p.id for p in load_problems(own_problems / "train.jsonl")}


def test_each_seed_draws_its_own_of_them(own_problems):
    experiment = Experiment(ARMS, train=8, dev=4, test=6, batch_size=8, data=own_problems)
    assert experiment.problems(0) == experiment.problems(0)
    assert all(experiment.problems(0)[split] != experiment.problems(1)[split] for split in ("train", "test"))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--model", "tiny"], "--data and --model go together"),
        (["--data", "{data}"], "--data and --model go together"),
        (["--data", "{data}/none", "--model", "tiny"], "does not exist"),
        (["--data", "{few}", "--model", "tiny"], "train.jsonl: 2 problems, "),
    ],
)
def test_too_few_problems_or_no_model_is_a_mistake(partway, own_problems, tmp_path, words, complaint):
    few = tmp_path / "few"
    few.mkdir()
    write_problems(few / "train.jsonl", generate_problems(2, seed=0))
    words = [word.format(data=own_problems, few=few) for word in words]
    code, _, err = partway("demo", "--out", tmp_path / "demo", *words)
    assert code != 0
    assert complaint in err
    assert not (tmp_path / "demo").exists()


def test_two_sizes_at_once_are_refused(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--quick", "--full", "--out", str(tmp_path)])
    assert result.exit_code != 0
    assert "exclude each other" in result.output


def test_problems_of_the_demo_are_not_those_of_pretraining():
    experiment = sizes.experiment_named("quick")
    assert {split: len(problems) for split, problems in experiment.problems(3).items()} == {
        "train": experiment.train,
        "dev": experiment.dev,
        "test": experiment.test,
    }
    questions = [p.question for problems in experiment.problems(3).values() for p in problems]
    assert len(set(questions)) == len(questions)
    assert not any(is_for_pretraining(p) for split in experiment.problems(3).values() for p in split)


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
