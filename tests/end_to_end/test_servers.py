"""Training whose samples are drawn by real servers: `transformers serve` on loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from training_cases import SMALL, apples, tiny_gpt_neo, write_inputs

from benchmarks.serving import transformers_serve
from partway.runs import Run
from partway.training import SelfSamplingConfig, SelfSamplingTrainer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*TypedStorage is deprecated:UserWarning"),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """A server without a model that all tests share: its address and its log."""
    from transformers.utils.import_utils import is_serve_available

    if not is_serve_available():
        pytest.skip("transformers serve is not installed; pip install 'transformers[serving]'")
    log = tmp_path_factory.mktemp("served") / "serve.log"
    with transformers_serve(log) as (_, url):
        yield url, log


def test_a_run_explores_through_a_server_with_the_weights_of_every_step(served, partway, tmp_path):
    url, log = served
    write_inputs(tmp_path, eval_strategy="no", max_completion_length=8, num_generations=2)
    words = ("--engine", url, "--output_dir", tmp_path / "run", "--use_cpu", "true")
    code, _, said = partway("train", tmp_path / "config.yaml", *words)
    assert code == 0, said
    run = Run(tmp_path / "run")
    samples = list(run.samples())
    assert sum(sample.count for sample in samples) == 4 * 4 * 2
    for step in range(4):
        assert f"{tmp_path}/run/weights/step-{step}@main" in log.read_text()
    assert not list((tmp_path / "run" / "weights").glob("*")), "weights are left behind"


def test_one_of_two_servers_is_killed_in_the_middle_and_no_sample_is_lost(served, tmp_path):
    one, _ = served
    problems = apples(8)
    settings = {"eval_strategy": "no", "max_completion_length": 8, "max_steps": 4, "logging_steps": 1}
    with transformers_serve(tmp_path / "other.log") as (process, other):
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
