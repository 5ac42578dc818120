"""Training whose samples are drawn by real servers: `transformers serve` on loopback."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.serving import transformers_serve
from partway.runs import Run
from partway.training import SelfSamplingConfig, SelfSamplingTrainer
from scripted_server import apple_routes, routed_server
from training_cases import SMALL, apples, tiny_gpt_neo, write_inputs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*TypedStorage is deprecated:UserWarning"),
]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def _serving():
    from transformers.utils.import_utils import is_serve_available

    if not is_serve_available():
        pytest.skip("transformers serve is not installed; pip install 'transformers[serving]'")


def test_a_run_explores_through_a_server_with_the_weights_of_every_step(partway, tmp_path):
    write_inputs(tmp_path, eval_strategy="no", max_completion_length=8, num_generations=2)
    with transformers_serve(tmp_path / "serve.log") as (_, url):
        words = ("--engine", url, "--output_dir", tmp_path / "run", "--use_cpu", "true")
        code, _, said = partway("train", tmp_path / "config.yaml", *words)
    assert code == 0, said
    run = Run(tmp_path / "run")
    samples = list(run.samples())
    assert sum(sample.count for sample in samples) == 4 * 4 * 2
    log = (tmp_path / "serve.log").read_text()
    for step in range(4):
        assert f"weights/step-{step}@main" in log
    assert not list((tmp_path / "run" / "weights").glob("*")), "weights are left behind"


def test_one_of_two_servers_is_killed_in_the_middle_and_no_sample_is_lost(tmp_path):
    problems = apples(8)
    settings = {"eval_strategy": "no", "max_completion_length": 8, "max_steps": 4, "logging_steps": 1}
    with (
        transformers_serve(tmp_path / "one.log") as (_, one),
        transformers_serve(tmp_path / "other.log") as (process, other),
    ):
        args = SelfSamplingConfig(
            **{**SMALL, **settings, "output_dir": str(tmp_path / "run"), "engine": [one, other]}
        )
        trainer = SelfSamplingTrainer(tiny_gpt_neo(problems), args, problems)
        trainer.engine.pool.look()
        before_step = trainer.before_step

        def killing() -> None:
            before_step()
            if trainer.step == 3:
                process.kill()

        trainer.before_step = killing
        trainer.train()
    run = Run(tmp_path / "run")
    drawn = [sum(sample.count for sample in run.samples() if sample.step == step) for step in range(1, 5)]
    assert drawn == [12] * 4
    first, *_, last = run.timings()
    name = other.partition("//")[2]
    assert first[f"servers/{name}/samples"] > 0, "both servers worked at first"
    assert (first["servers/live"], last["servers/live"]) == (2, 1)
    assert any(line[f"servers/{name}/failures"] for line in run.timings())


def test_two_processes_share_two_servers(tmp_path):
    """`accelerate launch`, with scripted servers: what two processes and two servers do together is ours."""
    write_inputs(tmp_path, eval_strategy="no", num_generations=2)
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--main_process_port", "0"]
    launch += [
        "--config_file",
        str(ROOT / "configs" / "accelerate" / "ddp_cpu.yaml"),
        "-m",
        "partway",
        "train",
    ]
    with routed_server(apple_routes()) as one, routed_server(apple_routes()) as other:
        words = [str(tmp_path / "config.yaml"), "--output_dir", str(tmp_path / "run")]
        words += ["--engine", f"{one.url},{other.url}", "--explore_ahead", "1", "--use_cpu", "true"]
        done = subprocess.run([*launch, *words], capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, done.stderr[-3000:]
        loads = [len(server.asked("/reset")) for server in (one, other)]
    run = Run(tmp_path / "run")
    assert run.environment["processes"] == 2
    drawn = [sum(sample.count for sample in run.samples() if sample.step == step) for step in range(1, 5)]
    assert drawn == [8] * 4
    assert [{s.late for s in run.samples() if s.step == step} for step in range(1, 5)] == [{0}, {1}, {1}, {1}]
    assert loads == [4, 4], "each version is handed over once, by the first process"
    assert run.metrics()[-2]["buffer/fcs_per_problem"] > 1
