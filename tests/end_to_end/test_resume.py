"""A run killed at any moment and resumed ends as if nothing had happened, to the last bit."""

import random
from pathlib import Path

import pytest

from partway.runs import Run
from partway.runs.checkpoints import RunProgress


@pytest.fixture(scope="module")
def uninterrupted(zygote, tmp_path_factory) -> tuple[Path, int]:
    """A run that was never killed, and how many file operations it made."""
    directory = tmp_path_factory.mktemp("uninterrupted") / "run"
    (outcome,) = zygote.train(directory)
    assert outcome.status == 0
    return directory, outcome.file_operations


def lasting(directory: Path) -> dict[str, bytes]:
    """Every file of a run that must not depend on whether it was interrupted, with its content."""
    patterns = ["metrics.jsonl", "samples/*", "evaluations/*", "problems/*", "final/model.safetensors"]
    patterns += ["final/buffer.jsonl", "checkpoint-*/model.safetensors", "checkpoint-*/buffer.jsonl"]
    patterns += ["checkpoint-*/rng_state.pth", "checkpoint-*/optimizer.pt"]
    paths = [path for pattern in patterns for path in directory.glob(pattern)]
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


def assert_same(directory: Path, expected: Path) -> None:
    found, wanted = lasting(directory), lasting(expected)
    assert found.keys() == wanted.keys()
    assert [name for name in wanted if found[name] != wanted[name]] == []


def test_the_uninterrupted_run_is_worth_comparing(uninterrupted):
    directory, count = uninterrupted
    names = lasting(directory)
    assert {"metrics.jsonl", "final/model.safetensors", "checkpoint-4/buffer.jsonl"} <= names.keys()
    assert names["checkpoint-4/buffer.jsonl"] != names["checkpoint-8/buffer.jsonl"]
    assert names["checkpoint-4/model.safetensors"] != names["checkpoint-8/model.safetensors"]
    assert b"partially_correct" in names["checkpoint-4/buffer.jsonl"]
    assert count > 100


@pytest.mark.parametrize("seed", range(3))
def test_killed_again_and_again_it_ends_the_same(zygote, uninterrupted, tmp_path, seed):
    """Each life is killed at a random file operation; lives get longer, so that the end is reached."""
    expected, count = uninterrupted
    rng = random.Random(seed)
    directory = tmp_path / "run"
    deaths = 0
    for life in range(8):
        (outcome,) = zygote.train(directory, kill_at=rng.randint(1, count), resume=life > 0)
        if outcome.status == 0:
            break
        assert outcome.status == -9
        deaths += 1
    else:
        assert zygote.train(directory, resume=True)[0].status == 0
    assert deaths > 0
    assert_same(directory, expected)


@pytest.mark.parametrize("kill_at", [1, 4, 9])
def test_killed_while_a_checkpoint_is_written_it_ends_the_same(zygote, uninterrupted, tmp_path, kill_at):
    expected, _ = uninterrupted
    directory = tmp_path / "run"
    (outcome,) = zygote.train(directory, kill_at=kill_at, kill_in="checkpoint-8/")
    assert outcome.status == -9
    assert (directory / "checkpoint-4").is_dir()
    assert list(Run(directory).checkpoints()) == [4], "the other one has no manifest yet"
    assert zygote.train(directory, resume=True)[0].status == 0
    assert not list(directory.glob(".*.tmp"))
    assert_same(directory, expected)


FEW = {"reference_share": 0.3, "solved_share": 0.5, "sample_budget": "success", "max_steps": 12}


@pytest.fixture(scope="module")
def few_references(zygote, tmp_path_factory) -> tuple[Path, int]:
    """A run whose batches and samples depend on what it has found so far."""
    directory = tmp_path_factory.mktemp("few") / "run"
    (outcome,) = zygote.train(directory, **FEW)
    assert outcome.status == 0
    return directory, outcome.file_operations


@pytest.mark.parametrize("seed", range(2))
def test_with_few_references_a_killed_run_ends_the_same(zygote, few_references, tmp_path, seed):
    expected, count = few_references
    rng = random.Random(seed)
    directory = tmp_path / "run"
    for life in range(3):
        (outcome,) = zygote.train(directory, kill_at=rng.randint(count // 2, count), resume=life > 0, **FEW)
        assert outcome.status in (0, -9)
    assert zygote.train(directory, resume=True, **FEW)[0].status == 0
    assert any(life["step"] for life in Run(directory).environment["resumed"]), "it was killed"
    assert_same(directory, expected)
    found, wanted = (RunProgress.read(run / "checkpoint-12") for run in (directory, expected))
    assert (found.drawn, found.turns) == (wanted.drawn, wanted.turns)
    assert sum(found.drawn.values()) == sum(sample.count for sample in Run(directory).samples())


def test_a_file_too_large_for_the_disk_is_one_clear_error(zygote, tmp_path):
    (outcome,) = zygote.train(tmp_path / "run", file_limit=30_000)
    assert outcome.status == 1
    assert "RunError" in outcome.error
    assert "cannot write checkpoint-4 at step 4" in outcome.error
    assert not list((tmp_path / "run").glob("*checkpoint*"))
