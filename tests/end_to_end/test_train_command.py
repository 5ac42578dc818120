"""`partway train` as a user meets it: mistakes in one line, signals, several processes, runs that report."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from training_cases import write_inputs

from partway.cli import app
from partway.errors import PartwayError
from partway.runs import Run
from partway.runs.rows import problems_digest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A tiny model, problems, and a config that names them."""
    folder = tmp_path_factory.mktemp("train")
    write_inputs(folder, logging_steps=1)
    return folder


def invoke(*words: object) -> str:
    """What a command prints, run in this process; errors come as they are raised."""
    result = CliRunner().invoke(app, ["train", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_run_leaves_every_file_that_is_documented(folder, tmp_path):
    output = invoke(folder / "config.yaml", "--output_dir", tmp_path / "run", "--json")
    last = json.loads(output.splitlines()[-1])
    assert last["step"] == 4
    assert last["finished"] is True
    assert 0 <= last["eval_pass@1"] <= 1
    names = {path.relative_to(tmp_path / "run").as_posix() for path in (tmp_path / "run").rglob("*")}
    assert {
        *("config.yaml", "environment.json", "metrics.jsonl", "timings.jsonl", "problems/train.jsonl"),
        *(
            "problems/dev.jsonl",
            "samples/00000001.jsonl",
            "evaluations/step-4.json",
            "evaluations/step-4.jsonl",
        ),
        *("checkpoint-4/buffer.jsonl", "checkpoint-4/progress.json", "checkpoint-4/manifest.json"),
        *("final/model.safetensors", "final/buffer.jsonl", "final/README.md", "final/generation_config.json"),
    } <= names
    run = Run.at(tmp_path / "run")
    page = (ROOT / "docs" / "runs.md").read_text()
    environment = run.environment
    assert environment["layout"] in ("tree", "tree_rows")
    assert environment["data"]["dev"]["sha256"] == problems_digest(run.problems("dev"))
    for summary in run.evaluations().values():
        assert summary["problems_file"] == "problems/dev.jsonl"
        assert summary["problems_sha256"] == environment["data"]["dev"]["sha256"]
    keys = {*environment, *(key.split("@")[0] for line in run.metrics() for key in line)}
    keys |= {key for line in run.timings() for key in line} | set(
        json.loads(first_line(run, "samples/00000001.jsonl"))
    )
    undocumented = {key for key in keys if key not in page and not key.startswith("samples/frac_")}
    assert undocumented == set()


def first_line(run: Run, name: str) -> str:
    return (run.directory / name).read_text().split("\n")[0]


def test_progress_is_plain_lines_where_there_is_no_terminal(folder, tmp_path):
    output = invoke(folder / "config.yaml", "--output_dir", tmp_path / "run")
    assert "step 1/4  loss" in output
    assert "kept 1.00 full" in output
    assert "steps/s" in output
    assert "pass@1" in output
    assert "\x1b" not in output
    assert "NOTHING was learned" not in output
    first, *lines = output.splitlines()
    model = folder / "model"
    assert first == f"partway: starting with {model} (some seconds)"
    assert "partway: read 8 problems; loading and checking the model (up to a minute)" in lines
    begins = [line for line in lines if line.startswith("partway: ")]
    begins = [line for line in begins if "layout" not in line and "loading" not in line]
    assert begins[0].startswith("partway: 8 problems, all with a solution")
    assert re.fullmatch(rf"partway: {model}, [\d,]+ weights, all trained; asked by .*'answer'", begins[1])
    assert begins[2].startswith("partway: 4 steps of 4 problems; self_sampling fcs+pcs, objective mle_aug; ")
    assert begins[3].startswith(f"partway: everything goes to {tmp_path / 'run'}; Ctrl-C saves")
    assert begins[-1].startswith("partway: next: partway evaluate ")


def test_a_run_that_learned_nothing_says_so_at_the_end(folder, tmp_path):
    rows = [{"question": f"{n} pens and one more?", "answer": n + 0.125} for n in range(4)]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = ["--train_file", tmp_path / "train.jsonl", "--output_dir", tmp_path / "run", "--max_steps", 2]
    *_, told, _, _ = invoke(folder / "config.yaml", *words).splitlines()
    assert told.startswith("partway: NOTHING was learned: no problem has a solution, and no sample was right")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--solution_end", "end_of_text"],
            "solution_end is a setting of python-written, not of python; say --language python-written",
        ),
        (["--learning_rat", "1"], "unknown key 'learning_rat'; did you mean 'learning_rate'?"),
        (["--max_steps", "many"], "max_steps is 'many', expected int"),
        (["--num_generations", "0"], "nothing would be sampled"),
        (["--max_steps", "-3"], "max_steps is -3, expected a number of steps, or -1"),
        (["--max_steps", "-1", "--num_train_epochs", "0"], "num_train_epochs is 0"),
        (["--output_dir", ""], "output_dir is empty, expected the path"),
        (["--seed", "4294967296"], "seed is 4294967296, expected less than 4294967296"),
        (["--learning_rate", "-1"], "learning_rate is -1.0, expected at least 0"),
        (["--train_file", "null"], "train_file is not set"),
        (["--train_file", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--model_name_or_path", "/nowhere"], "/nowhere: no such directory"),
        (["--metric_for_best_model", "eval_pass@7"], "metric_for_best_model is eval_pass@7"),
    ],
)
def test_a_mistake_is_one_line_before_any_work(folder, tmp_path, words, message):
    with pytest.raises(PartwayError) as error:
        invoke(folder / "config.yaml", "--output_dir", tmp_path / "run", *words)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_pairs_alone_can_say_everything_and_a_run_can_go_on_by_its_directory(folder, tmp_path):
    settings = yaml.safe_load((folder / "config.yaml").read_text())
    words = [f"--{key}={value}" for key, value in settings.items() if value is not None]
    invoke(*words, "--output_dir", tmp_path / "run", "--eval_strategy", "no", "--max_steps", 1)
    invoke("--output_dir", tmp_path / "run", "--resume", "--max_steps", 2)
    assert [line["step"] for line in Run.at(tmp_path / "run").metrics()] == [1, 2, 2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Give CONFIG.yaml, or at least --train_file"),
        (["--max_steps", "3"], "train_file is not set; make problems with `partway data`"),
        (
            ["--max_steps", "3", "train.yaml"],
            "'train.yaml' stands alone; expected --key value, and a file before",
        ),
    ],
)
def test_what_is_missing_without_a_config_is_said(words, message):
    result = CliRunner().invoke(app, ["train", *words])
    assert result.exit_code != 0
    assert message in f"{result.output} {result.exception}"


def test_resume_goes_on_extends_and_starts_only_as_told(folder, tmp_path):
    words = [folder / "config.yaml", "--output_dir", tmp_path / "run", "--eval_strategy", "no"]
    with pytest.raises(PartwayError, match="there is no run to resume"):
        invoke(*words, "--resume")
    assert not (tmp_path / "run").exists()
    invoke("--resume", "auto", *words, "--max_steps", 1)
    invoke("--resume", *words, "--max_steps", 2)
    assert [line["step"] for line in Run.at(tmp_path / "run").metrics()] == [1, 2, 2]
    with pytest.raises(PartwayError, match="there is a run already; --resume"):
        invoke(*words)


def test_an_empty_file_of_problems_is_an_error(folder, tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(PartwayError, match="no problems"):
        invoke(folder / "config.yaml", "--train_file", tmp_path / "empty.jsonl", "--dry-run")


def test_a_reference_that_does_not_run_is_named_and_left_out_or_an_error(folder, tmp_path):
    rows = (folder / "train.jsonl").read_text().split("\n")
    broken = json.loads(rows[2])
    broken["solution"] = "n0 = 1 / 0\nanswer = n0"
    rows[2] = json.dumps(broken)
    (tmp_path / "broken.jsonl").write_text("\n".join(rows))
    output = invoke(folder / "config.yaml", "--train_file", tmp_path / "broken.jsonl", "--dry-run")
    assert "left out 1 row of" in output
    assert broken["id"] in output or "broken.jsonl:3" in output or "line 3" in output
    assert "7 problems" in output
    with pytest.raises(PartwayError, match=r"ZeroDivisionError|division by zero"):
        invoke(folder / "config.yaml", "--train_file", tmp_path / "broken.jsonl", "--dry-run", "--strict")


def test_steps_of_evaluations_that_nobody_asked_for_need_not_fit_those_of_saving(folder, tmp_path):
    words = ["--model_name_or_path", folder / "model", "--train_file", folder / "train.jsonl"]
    words += ["--per_device_train_batch_size", 2, "--max_completion_length", 8, "--save_steps", 2]
    output = invoke(*words, "--eval_steps", 60, "--output_dir", tmp_path / "run", "--dry-run")
    assert re.search(r"first batch: \d+ problems, loss \d", output)


def test_a_dry_run_writes_nothing(folder, tmp_path):
    output = invoke(folder / "config.yaml", "--output_dir", tmp_path / "run", "--dry_run", "true")
    assert not (tmp_path / "run").exists()
    assert "everything goes to" not in output


def test_metrics_go_to_tensorboard_too(folder, tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "board"))
    invoke(
        folder / "config.yaml",
        "--output_dir",
        tmp_path / "run",
        "--report_to",
        "tensorboard",
        "--max_steps",
        1,
    )
    assert list((tmp_path / "board").rglob("events.*"))


def end_at_step_2(run: Run, number: signal.Signals) -> None:
    """Send this process a signal when the run has a second line of metrics."""
    while not (run.directory / "metrics.jsonl").is_file() or len(run.metrics()) < 2:
        time.sleep(0.01)
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_and_exits_with_its_code(partway, folder, tmp_path, number, code):
    words = ["--output_dir", tmp_path / "run", "--max_steps", 1000, "--save_steps", 1000]
    sender = threading.Thread(target=end_at_step_2, args=(Run(tmp_path / "run"), number), daemon=True)
    sender.start()
    found, _, err = partway("train", folder / "config.yaml", *words, "--eval_strategy", "no")
    assert found == code, err
    assert f"{number.name} received; checkpoint-" in err
    assert len(list((tmp_path / "run").glob("checkpoint-*"))) == 1
    assert not (tmp_path / "run" / "final").exists()


def test_a_run_is_replayed_although_the_server_of_the_settings_is_gone(folder, tmp_path):
    run, again = tmp_path / "run", tmp_path / "again"
    invoke(folder / "config.yaml", "--output_dir", run, "--max_steps", 2)
    gone = ["--engine", "http://127.0.0.1:9", "--engine_timeout", 0.1, "--explore_ahead", 1]
    invoke(run / "config.yaml", "--replay", run, "--output_dir", again, *gone)
    for name in ("buffer.jsonl", "model.safetensors"):
        assert (again / "final" / name).read_bytes() == (run / "final" / name).read_bytes()


def test_a_run_branches_from_another(folder, tmp_path):
    mle, fcs = tmp_path / "mle", tmp_path / "fcs"
    words = ["--eval_strategy", "no", "--save_steps", 2]
    invoke(
        folder / "config.yaml", "--output_dir", mle, *words, "--self_sampling", "none", "--objective", "mle"
    )
    words += ["--output_dir", fcs, "--self_sampling", "fcs", "--sampling_start_step", 2]
    with pytest.raises(PartwayError, match="nowhere: no run here"):
        invoke(folder / "config.yaml", *words, "--branch", "nowhere")
    invoke(folder / "config.yaml", *words, "--branch", mle, "--resume", "auto")
    assert Run(fcs).environment["branched"] == "mle/checkpoint-2"
    assert {sample.step for sample in Run(fcs).samples()} == {3, 4}


DEEPSPEED = pytest.mark.skipif(
    find_spec("deepspeed") is None, reason="needs deepspeed: pip install deepspeed"
)


@pytest.mark.slow
@pytest.mark.parametrize("config", ["ddp_cpu", pytest.param("zero2", marks=DEEPSPEED)])
def test_accelerate_launches_two_processes(folder, tmp_path, config):
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--main_process_port", "0"]
    launch += ["--config_file", str(ROOT / "configs" / "accelerate" / f"{config}.yaml")]
    launch += ["--num_processes", "2", "-m", "partway"]
    words = ["train", folder / "config.yaml", "--output_dir", tmp_path / "run", "--max_steps", 1]
    words += ["--eval_strategy", "no"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu"}
    environment.pop("COVERAGE_PROCESS_CONFIG", None)  # measured elsewhere; here it only takes time
    result = subprocess.run(
        [*launch, *map(str, words)], capture_output=True, text=True, env=environment, check=False
    )
    assert result.returncode == 0, result.stderr
    run = Run.at(tmp_path / "run")
    assert run.environment["processes"] == 2
    assert run.is_finished
    assert sum(sample.count for sample in run.samples()) == 4 * 3


@pytest.mark.parametrize(
    "path", sorted((ROOT / "configs" / "accelerate").glob("*.yaml")), ids=lambda p: p.stem
)
def test_accelerate_understands_its_settings(path):
    from accelerate.commands.config.config_args import load_config_from_file

    config = load_config_from_file(str(path))
    assert config.num_processes >= 1
    assert f"accelerate launch --config_file configs/accelerate/{path.name}" in path.read_text()


def test_the_quick_config_is_one_that_trains(tmp_path, folder):
    words = ["--train_file", folder / "train.jsonl", "--eval_file", folder / "dev.jsonl", "--dry-run"]
    output = invoke(ROOT / "configs" / "storyproblems_tiny.yaml", *words)
    assert "first batch: 8 problems" in output


def test_a_launcher_that_started_one_process_only_is_pointed_out(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("MASTER_PORT", "29500")
    output = invoke(folder / "config.yaml", "--output_dir", tmp_path / "run", "--max_steps", 1)
    assert "one process only: without GPUs, accelerate launch needs --multi_gpu" in output
