"""Any number of processes gives the same run, up to the order in which floats are added."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from scripted_server import apple_routes, routed_server

from partway.runs import Run


@pytest.fixture(scope="module")
def alone(zygote, tmp_path_factory) -> Path:
    """The run that one process makes; without dropout, whose noise belongs to a process."""
    directory = tmp_path_factory.mktemp("alone") / "run"
    (outcome,) = zygote.train(directory, dropout=0.0)
    assert outcome.status == 0
    return directory


def assert_equivalent(directory: Path, expected: Path) -> None:
    for name in ("final/buffer.jsonl", "samples/00000001.jsonl", "checkpoint-4/buffer.jsonl"):
        assert (directory / name).read_bytes() == (expected / name).read_bytes(), name
    for found, wanted in zip(Run(directory).metrics(), Run(expected).metrics(), strict=True):
        assert found == pytest.approx(wanted, rel=1e-4, abs=1e-5)
    found, wanted = (load_file(run / "final" / "model.safetensors") for run in (directory, expected))
    for name, weight in wanted.items():
        torch.testing.assert_close(found[name], weight, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
def test_two_processes_do_what_one_does(zygote, alone, tmp_path, strategy):
    first, second = zygote.train(tmp_path / "run", processes=2, strategy=strategy, dropout=0.0)
    assert (first.status, second.status) == (0, 0)
    assert first.buffers == second.buffers, "processes end with different buffers"
    assert_equivalent(tmp_path / "run", alone)


def test_exchanging_buffers_less_often_changes_nothing(zygote, alone, tmp_path):
    outcomes = zygote.train(tmp_path / "run", processes=2, dropout=0.0, buffer_sync_steps=100)
    assert [outcome.status for outcome in outcomes] == [0, 0]
    assert_equivalent(tmp_path / "run", alone)


def test_accumulating_gradients_changes_nothing(zygote, alone, tmp_path):
    (outcome,) = zygote.train(tmp_path / "run", dropout=0.0, gradient_accumulation_steps=2)
    assert outcome.status == 0
    assert_equivalent(tmp_path / "run", alone)


FEW = {"reference_share": 0.3, "solved_share": 0.5, "sample_budget": "success", "dropout": 0.0}


@pytest.fixture(scope="module")
def few_references(zygote, tmp_path_factory) -> Path:
    """A run of one process whose batches and samples depend on what it has found so far."""
    directory = tmp_path_factory.mktemp("few") / "run"
    assert zygote.train(directory, **FEW)[0].status == 0
    return directory


@pytest.mark.parametrize(
    ("processes", "settings"),
    [(2, {}), (2, {"buffer_sync_steps": 100}), (2, {"gradient_accumulation_steps": 2})],
)
def test_with_few_references_processes_choose_the_same_problems(
    zygote, few_references, tmp_path, processes, settings
):
    outcomes = zygote.train(tmp_path / "run", processes=processes, **FEW, **settings)
    assert {outcome.status for outcome in outcomes} == {0}
    assert len({outcome.buffers for outcome in outcomes}) == 1, "processes end with different buffers"
    assert_equivalent(tmp_path / "run", few_references)


@pytest.mark.parametrize(("strategy", "processes"), [("ddp", 1), ("fsdp2", 2)])
def test_a_distributed_run_is_resumed(zygote, alone, tmp_path, strategy, processes):
    """Killed while the second checkpoint is written; DDP is resumed by one process instead of two."""
    directory = tmp_path / "run"
    outcomes = zygote.train(
        directory, processes=2, strategy=strategy, dropout=0.0, kill_at=1, kill_in="checkpoint-8/"
    )
    assert outcomes[0].status == -9
    outcomes = zygote.train(directory, processes=processes, strategy=strategy, dropout=0.0, resume=True)
    assert {outcome.status for outcome in outcomes} == {0}
    assert Run(directory).environment["resumed"][0]["step"] == 4
    assert_equivalent(directory, alone)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
def test_two_processes_branch_as_one_does(zygote, tmp_path, strategy):
    """From a run of two that never samples, to the end of one process that makes all steps itself."""
    mle = {"self_sampling": "none", "objective": "mle", "dropout": 0.0}
    sampling = {"sampling_start_step": 4, "dropout": 0.0}
    outcomes = zygote.train(tmp_path / "mle", processes=2, strategy=strategy, **mle)
    outcomes += zygote.train(
        tmp_path / "branch", branch=tmp_path / "mle", processes=2, strategy=strategy, **sampling
    )
    outcomes += zygote.train(tmp_path / "whole", **sampling)
    assert [outcome.status for outcome in outcomes] == [0] * 5
    assert Run(tmp_path / "branch").environment["branched"] == "mle/checkpoint-4"
    assert outcomes[2].buffers == outcomes[3].buffers == outcomes[4].buffers
    assert_equivalent(tmp_path / "branch", tmp_path / "whole")


def test_two_processes_share_two_servers(zygote, tmp_path):
    settings = {"eval_strategy": "no", "max_steps": 4, "num_generations": 2, "explore_ahead": 1}
    with routed_server(apple_routes()) as one, routed_server(apple_routes()) as other:
        urls = [one.url, other.url]
        outcomes = zygote.train(tmp_path / "run", processes=2, engine=urls, **settings)
        loads = [len(server.asked("/reset")) for server in (one, other)]
    assert [outcome.status for outcome in outcomes] == [0, 0]
    run = Run(tmp_path / "run")
    assert run.environment["processes"] == 2
    drawn = [sum(sample.count for sample in run.samples() if sample.step == step) for step in range(1, 5)]
    assert drawn == [8, 8, 4, 8], "the third step takes the rest of ten problems"
    assert [{s.late for s in run.samples() if s.step == step} for step in range(1, 5)] == [{0}, {1}, {1}, {1}]
    assert loads == [4, 4], "each version is handed over once, by the first process"
    assert run.metrics()[-2]["buffer/fcs_per_problem"] > 1
