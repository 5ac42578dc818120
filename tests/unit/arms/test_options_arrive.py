"""Every number of a comparison, from an option or its file, is seen where it takes effect."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from training_cases import apples

from partway.arms.arms import load_arms
from partway.arms.deriving import candidates
from partway.arms.experiment import Experiment
from partway.arms.trials import Trial
from partway.cli import app
from partway.language import PythonLanguage
from partway.problems import write_problems

OPTIONS = {
    "--arms": "mle, fcs",
    "--seeds": 2,
    "--data": "data",
    "--model": "mine",
    "--steps": 30,
    "--eval-steps": 7,
    "--batch-size": 6,
    "--num-generations": 2,
    "--train": 24,
    "--references": 12,
    "--dev": 9,
    "--test": 8,
    "--samples": 11,
    "--out": "there",
    "--jobs": 3,
}
FILE = """
dev_samples: 15
learning_rate: 3.0e-4
selects: pass@10
max_completion_length: 33
measures_all: false
temperatures: [0.9, 1.5]
dtype: bfloat16
own_metrics: ["statistics:fmean"]
settings: {temperature: 0.55, checker: exact}
steps: 99
"""
ELSEWHERE = {"learning_rates", "trial_steps", "same_problems"}  # test_comparing.py follows these


@pytest.fixture
def seen(tmp_path, monkeypatch) -> dict[str, Any]:
    """What is to be run, by the options above and a file of other numbers; nothing is trained."""
    for seed, (split, count) in enumerate({"train": 40, "dev": 20, "test": 20}.items()):
        write_problems(tmp_path / "data" / f"{split}.jsonl", apples(count, seed))
    (tmp_path / "arms.yaml").write_text(FILE)
    found: dict[str, Any] = {}

    def run(experiment: Experiment, out: Path, jobs: int | None, as_json: bool, quiet: bool) -> list[Any]:
        found.update(experiment=experiment, out=out, jobs=jobs)
        raise click.Abort

    monkeypatch.setattr("partway.arms.compare.run_comparison", run)
    monkeypatch.chdir(tmp_path)
    words = [str(word) for option in OPTIONS.items() for word in option]
    CliRunner().invoke(app, ["--quiet", "compare", "arms.yaml", *words], catch_exceptions=False)
    return found


def test_a_comparison_is_run_as_the_options_say(seen):
    experiment: Experiment = seen["experiment"]
    assert [arm.name for arm in experiment.arms] == ["mle", "fcs"]
    assert (seen["out"], seen["jobs"], experiment.seeds) == (Path("there"), 3, (0, 1))
    problems = experiment.problems(0)
    assert {split: len(of_split) for split, of_split in problems.items()} == {
        "train": 24,
        "dev": 9,
        "test": 8,
    }
    assert {one.id.rpartition("-")[0] for one in problems["test"]} == {"apples-2"}
    assert experiment.problems(1)["test"] != problems["test"], "each seed draws its own"
    dev, test = ([one.id.rpartition("-")[2] for one in problems[split]] for split in ("dev", "test"))
    assert dev[:8] != test, "each file is drawn from in its own order"
    known = experiment.seen_by(experiment.arms[0], problems["train"])
    assert sum(problem.reference is not None for problem in known) == 12


def test_arms_are_trained_as_the_options_and_the_file_say(seen, tmp_path):
    experiment: Experiment = seen["experiment"]
    config = experiment.training_config(experiment.arm("fcs"), 1, tmp_path / "run")
    assert (config.model_name_or_path, config.seed) == ("mine", 1)
    assert config.output_dir == str(tmp_path / "run")
    assert (config.max_steps, config.eval_steps, config.save_steps) == (30, 7, 7), "an option overrides"
    assert (config.per_device_train_batch_size, config.num_generations) == (6, 2)
    assert (config.learning_rate, config.warmup_steps, config.temperature) == (3e-4, 6, 0.55)
    assert (config.eval_samples, config.metric_for_best_model) == (15, "pass@10")
    assert config.max_completion_length == 33
    assert config.save_total_limit is None, "each checkpoint may be chosen"


def test_arms_are_measured_as_the_options_and_the_file_say(seen, tmp_path):
    experiment: Experiment = seen["experiment"]
    assert (experiment.test_samples, experiment.measures_all) == (11, False)
    plan = Trial(experiment, experiment.arms[0], 1, tmp_path, print).plan(experiment.test_samples)
    assert (plan.samples, plan.ks, plan.seed, plan.pass1_samples) == (11, (1, 5, 10), 1, 1)
    assert (plan.settings.temperature, plan.settings.max_completion_length) == (0.8, 33)
    assert plan.own_metrics == ("statistics:fmean",)
    told = (experiment.temperatures, experiment.dtype)
    assert told == ([0.9, 1.5], "bfloat16"), "test_deriving.py follows these"
    assert plan.language == PythonLanguage(checker="exact"), "right on test is what was right on dev"


def test_problems_and_chance_are_of_the_language_of_the_settings(tmp_path):
    row = {"id": "p", "question": "Which is it?", "solution": "SELECT 7", "answer": [[7]]}
    row["context"] = "CREATE TABLE one (a)"
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.jsonl").write_text(json.dumps(row))
    sizes = {"train": 1, "dev": 1, "test": 1, "batch_size": 1}
    arms = load_arms(["chance"])
    experiment = Experiment(arms, data=tmp_path, settings={"language": "sql"}, **sizes)
    problems = experiment.problems(0)
    trial = Trial(experiment, arms[0], 0, tmp_path, print)
    [contender], _ = candidates(trial, None, problems)
    assert (contender.dev["pass@1"], contender.measure()["pass@1"]) == (1.0, [1.0])


def test_built_in_problems_are_as_hard_as_the_file_says():
    arms = load_arms(["mle"])
    easy, hard = (Experiment(arms, train=32, difficulty=level) for level in ("easy", "hard"))
    assert easy.problems(0)["train"] != hard.problems(0)["train"]


def test_every_number_is_followed():
    command = app.get_command(click.Context(app), "compare")
    options = {max(one.opts, key=len) for one in command.params if isinstance(one, click.Option)}
    assert options == {*OPTIONS, "--list", "--json"}
    named = {word.removeprefix("--").replace("-", "_") for word in OPTIONS}
    told = {line.partition(":")[0] for line in FILE.split("\n")}
    keys = {one.name for one in fields(Experiment)} - {"test_samples", "difficulty"}
    assert keys - named - told == ELSEWHERE, "a number needs a test here"
