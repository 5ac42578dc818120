"""`partway compare`: equal budgets, one rule of choice, three tables; what is there is not made again."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from partway.arms.running import run_arm
from partway.arms.side_by_side import cells_of
from partway.runs import Run

SMALL = [
    *("--batch-size", "8", "--train", "8", "--dev", "4", "--test", "6", "--samples", "10"),
    *("--steps", "4", "--eval-steps", "2", "--seeds", "1"),
]
OWN_ARM = """
label: FCS at a low temperature
source: none
settings:
  self_sampling: fcs
  temperature: 0.4
"""
KILLED = """
arms: [mle, fcs+pcs, rft]
seeds: 1
train: 8
references: 3
batch_size: 4
num_generations: 2
steps: 4
eval_steps: 2
dev: 2
test: 3
dev_samples: 5
test_samples: 5
max_completion_length: 20
"""
# A signal and the file operation at which it comes: in training, in a checkpoint, in samples, in the test.
DEATHS = [
    (signal.SIGKILL, "mle-seed0/checkpoint-2/", 3),
    (signal.SIGTERM, "fcs-pcs-seed0/samples/", 3),
    (signal.SIGKILL, "fcs-pcs-seed0/evaluations/test", 2),
    (signal.SIGKILL, "rft-seed0-rounds/", 4),
    (signal.SIGTERM, "rft-seed0/metrics.jsonl", 2),
    (signal.SIGKILL, "rft-seed0/evaluations/test", 4),
]
LASTING = ("numbers.json", "*/metrics.jsonl", "*/samples/*", "*/evaluations/*.jsonl", "*-rounds/*.jsonl")
LASTING += ("*/*/model.safetensors", "*/*/buffer.jsonl")
SLOW_ARMS = """
import os, signal, sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from partway.arms import side_by_side
from partway.cli.interruptions import interruptions_handled
from partway.arms.arms import shipped_arms
from partway.arms.experiment import Experiment
from partway.arms.trials import Stage

def slow_arm(experiment, arm, seed, directory, tell):
    if arm.name == "fcs":
        tell(Stage("training", 1, 1, "has ended"))
        return
    signal.signal(signal.SIGTERM, lambda *_: (Path("saved").touch(), os._exit(143)))
    while not Path("ended").exists():
        time.sleep(0.01)
    tell(Stage("training", 1, 1, "has begun"))
    time.sleep(600)

class Late:
    def __init__(self, news):
        self.news, self.get = news, news.get

    def put(self, one):
        os.kill(os.getpid(), signal.SIGTERM)
        self.news.put(one)

when, number = sys.argv[1], int(sys.argv[2])
side_by_side.run_arm = slow_arm
if __name__ != "__main__":  # a process that is starting
    starting = "an arm" if Path("first").exists() else "news"
    Path("first").touch()
    if starting == when:
        os.killpg(0, number)
if when == "late":  # nothing is to run, and the signal comes while the bars end
    usual = side_by_side.Bars.__init__
    side_by_side.Bars.__init__ = lambda bars, news, *others: usual(bars, Late(news), *others)
    side_by_side.cells_of = lambda experiment: []
    side_by_side.processes = lambda count: ThreadPoolExecutor(1)
if __name__ == "__main__":
    arms = tuple(shipped_arms()[name] for name in ("mle", "fcs"))
    try:
        with interruptions_handled():
            side_by_side.run_arms(Experiment(arms), Path(), jobs=2, quiet=False)
            time.sleep(60)
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("compare")


@pytest.fixture
def compare(partway, folder, monkeypatch, unrendered):
    """Runs the command in the folder, its arms in this process one after the other."""

    def run_arms(experiment, directory, jobs, quiet):
        outcomes = [
            run_arm(experiment, *cell, directory, lambda stage: None) for cell in cells_of(experiment)
        ]
        for outcome in outcomes:  # by these ids intervals know which seeds share their problems
            test = experiment.problems(outcome.seed)["test"]
            assert outcome.measured_on == tuple(sorted(problem.id for problem in test))
        return outcomes

    monkeypatch.setattr("partway.arms.side_by_side.run_arms", run_arms)
    monkeypatch.chdir(folder)
    return lambda *words: partway("compare", *words, *SMALL, "--out", "out")


def test_an_arm_of_ones_own_is_one_file_beside_the_shipped_ones(compare, folder):
    (folder / "low.yaml").write_text(OWN_ARM)
    (folder / "arms.yaml").write_text("arms: [mle, low.yaml]\n")
    code, out, err = compare("arms.yaml")
    assert code == 0, err
    assert "FCS at a low" in out
    for title in ("Selected by dev pass@1", "Nothing chosen", "For each k the best", "What an arm spends"):
        assert title in out
    assert "selected: the checkpoint with the best dev pass@1" in out
    config = Run.at(folder / "out" / "low-seed0").config
    assert (config["self_sampling"], config["temperature"], config["max_steps"]) == ("fcs", 0.4, 4)
    numbers = json.loads((folder / "out" / "comparison.json").read_text())
    budget = {name: arm["spent"]["samples"] for name, arm in numbers["arms"].items()}
    assert budget == {"mle": 0, "low": 4 * 8}
    assert numbers["budget"] == {"steps": 4, "samples": 32}
    assert {arm["spent"]["steps"] for arm in numbers["arms"].values()} == {4}
    assert "| FCS at a low temperature |" in (folder / "out" / "comparison.md").read_text()
    assert "report/report.html" in (folder / "out" / "comparison.html").read_text()


def test_an_arm_added_later_finds_the_others_done(compare, folder):
    weights = folder / "out" / "mle-seed0" / "final" / "model.safetensors"
    before = weights.stat().st_mtime_ns
    code, out, err = compare("arms.yaml", "--arms", "mle,fcs", "--json")
    assert code == 0, err
    assert weights.stat().st_mtime_ns == before
    numbers = json.loads(out)["arms"]
    assert list(numbers) == ["mle", "fcs"]
    gain = numbers["fcs"]["tables"]["last"]["minus_mle"]["pass@5"]["value"]
    sides = [numbers[name]["tables"]["last"]["metrics"]["pass@5"]["value"] for name in ("fcs", "mle")]
    assert gain == pytest.approx(sides[0] - sides[1])
    assert numbers["fcs"]["tables"]["last"]["chosen"] == {"0": "step 4"}


def test_an_arm_killed_before_its_first_checkpoint_is_trained_again(compare, folder):
    run = Run(folder / "out" / "fcs-seed0")
    before = (run.final / "model.safetensors").read_bytes()
    for directory in (run.final, run.evaluations_directory, *run.checkpoints().values()):
        shutil.rmtree(directory)
    code, _, err = compare("--arms", "mle,fcs")
    assert code == 0, err
    assert (run.final / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--arms", "mle,fsc"], "no arm 'fsc'; did you mean 'fcs'?"),
        ([], "no arms to compare; name some with --arms"),
        (["--arms", "mle", "--data", "."], "data needs a model"),
        (["--arms", "longer.yaml"], "arm longer: max_steps belongs to the comparison"),
        (["--arms", "typo.yaml"], "arm typo: unknown key 'temprature'; did you mean 'temperature'?"),
    ],
)
def test_a_mistake_is_told_before_anything_is_trained(compare, folder, words, complaint):
    (folder / "longer.yaml").write_text("settings: {max_steps: 9}\n")
    (folder / "typo.yaml").write_text("settings: {temprature: 0.5}\n")
    code, _, err = compare(*words)
    assert code == 1
    assert complaint in err
    assert not (folder / "out" / "longer-seed0").exists()
    assert not (folder / "out" / "typo-seed0").exists()


def test_the_arms_are_listed_with_their_sources(partway):
    code, out, _ = partway("compare", "--list")
    assert code == 0
    assert "fcs+pcs-beta-mml" in out
    assert "Ni et al." in out


@pytest.mark.skipif(os.name == "nt", reason="no process groups on Windows")
@pytest.mark.parametrize(
    ("when", "number"),
    [
        ("news", signal.SIGINT),
        ("news", signal.SIGTERM),
        ("an arm", signal.SIGINT),
        ("one has ended", signal.SIGTERM),
        ("late", signal.SIGTERM),
    ],
)
def test_a_signal_to_a_comparison_ends_all_its_processes_without_a_word(tmp_path, when, number):
    script = tmp_path / "slow.py"
    script.write_text(SLOW_ARMS)
    command = [sys.executable, str(script), when, str(int(number))]
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True, text=True
    ) as comparison:
        if when == "one has ended":
            assert "has ended" in comparison.stderr.readline()
            (tmp_path / "ended").touch()
            assert "has begun" in comparison.stderr.readline()
            os.kill(comparison.pid, number)  # as the system does: it tells the others
        assert comparison.communicate(timeout=60)[1] == ""
    assert comparison.returncode == 128 + number
    assert (tmp_path / "saved").exists() is (when == "one has ended"), "training may save before it ends"


def test_a_comparison_that_is_killed_again_and_again_ends_with_the_same_numbers_and_files(zygote, tmp_path):
    file = tmp_path / "arms.yaml"
    file.write_text(KILLED)
    expected, found = tmp_path / "expected", tmp_path / "found"
    for directory in (expected, found):
        directory.mkdir()
    assert zygote.compare(file, expected).status == 0
    for number, where, place in DEATHS:
        status = zygote.compare(file, found, kill_at=place, kill_in=where, kill_by=number).status
        assert status == (-9 if number == signal.SIGKILL else 1), where
    assert zygote.compare(file, found).status == 0
    lasting, again = (
        {str(path.relative_to(one)): path.read_bytes() for pattern in LASTING for path in one.glob(pattern)}
        for one in (expected, found)
    )
    assert "rft-seed0/checkpoint-2/buffer.jsonl" in lasting
    assert [name for name in lasting if again.get(name) != lasting[name]] == []
