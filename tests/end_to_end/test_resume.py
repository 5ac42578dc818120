"""A run killed at any moment and resumed ends as if nothing had happened, to the last bit."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent


class Zygote:
    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, str(TESTS / "kill_zygote.py")]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def train(
        self, directory: Path, *, kill_at: int = 0, resume: bool = False, **settings
    ) -> tuple[int, int]:
        """The exit code of a training process (negative: the signal it died of) and its file operations."""
        request = {"directory": str(directory), "kill_at": kill_at, "resume": resume, "settings": settings}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return answer["status"], int(answer["count"] or 0)


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    zygote = Zygote()
    with zygote.process:
        yield zygote


@pytest.fixture(scope="module")
def uninterrupted(zygote, tmp_path_factory) -> tuple[Path, int]:
    """A run that was never killed, and how many file operations it made."""
    directory = tmp_path_factory.mktemp("uninterrupted") / "run"
    status, count = zygote.train(directory)
    assert status == 0
    return directory, count


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
        status, _ = zygote.train(directory, kill_at=rng.randint(1, count), resume=life > 0)
        if status == 0:
            break
        assert status == -9
        deaths += 1
    else:
        assert zygote.train(directory, resume=True)[0] == 0
    assert deaths > 0
    assert_same(directory, expected)


def test_killed_while_a_checkpoint_is_written_it_ends_the_same(zygote, uninterrupted, tmp_path):
    expected, _ = uninterrupted
    directory, resume = tmp_path / "run", False
    kill_at = 30
    while not list(directory.glob(".checkpoint-*.tmp")):
        status, _ = zygote.train(directory, kill_at=kill_at, resume=resume)
        assert status == -9, "no kill left a half-written checkpoint"
        resume, kill_at = True, kill_at + 7
    assert zygote.train(directory, resume=True)[0] == 0
    assert not list(directory.glob(".*.tmp"))
    assert_same(directory, expected)
