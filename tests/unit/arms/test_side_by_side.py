"""Arms at the same time: each on a GPU of its own, where there are several."""

import contextlib
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import pytest
import torch

from partway.arms import side_by_side
from partway.arms.arms import Arm
from partway.arms.experiment import Experiment
from partway.arms.side_by_side import arms_at_once, gpus, one_thread, processes, run_arms


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)


def test_as_many_arms_as_gpus_train_at_once(two_gpus):
    assert arms_at_once() == 2


def test_every_process_sees_one_gpu(two_gpus, monkeypatch):
    assert gpus(3) == ["0", "1", "0"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    assert gpus(3) == ["4", "7", "4"]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with processes(1) as pool:
        assert pool.submit(os.getenv, "CUDA_VISIBLE_DEVICES").result() == "4"
        assert pool.submit(os.getenv, "OMP_NUM_THREADS").result() == "1"


def test_without_a_gpu_nothing_is_said_of_one(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert gpus(2) == ["", ""]
    with processes(1) as pool:
        assert pool.submit(os.getenv, "CUDA_VISIBLE_DEVICES").result() is None


ORPHANS = """
import os, signal
from partway.arms import side_by_side
side_by_side.gpus = lambda count: [""] * count
if __name__ == "__main__":
    with side_by_side.processes(1) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name == "nt", reason="no such signal on Windows")
def test_processes_end_with_the_one_that_was_killed(tmp_path):
    script = tmp_path / "orphans.py"
    script.write_text(ORPHANS)
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, start_new_session=True
    ) as died:
        try:
            told, _ = died.communicate(timeout=60)  # until nobody can write any more
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(died.pid, signal.SIGKILL)
    assert int(told)
    assert died.returncode == -signal.SIGKILL


class NoManager:
    """Carries news inside this process."""

    def __init__(self, ctx):
        self.Queue = Queue

    def start(self, initializer):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def test_arms_come_after_those_they_stand_on_and_outcomes_are_in_their_own_order(monkeypatch):
    begun = []
    monkeypatch.setattr(side_by_side, "SyncManager", NoManager)
    monkeypatch.setattr(side_by_side, "processes", lambda count: ThreadPoolExecutor(1))
    monkeypatch.setattr(
        side_by_side,
        "run_arm",
        lambda experiment, arm, seed, directory, tell: begun.append((arm.name, seed)) or begun[-1],
    )
    mle, rft = Arm("mle", "MLE"), Arm("rft", "RFT", method="rounds", of="mle")
    hot = Arm("hot", "RFT, temperature", method="temperatures", of="rft")
    outcomes = run_arms(Experiment((hot, rft, mle), seeds=(3, 7)), Path(), jobs=1, quiet=True)
    assert begun == [(name, seed) for name in ("mle", "rft", "hot") for seed in (3, 7)]
    assert outcomes == [(name, seed) for seed in (3, 7) for name in ("hot", "rft", "mle")]


def test_a_process_whose_training_was_stopped_takes_no_other_arm(monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(side_by_side, "run_arm", stopped)
    monkeypatch.setattr(side_by_side.os, "_exit", lambda code: codes.append(code))
    codes = []
    side_by_side._run(Experiment((Arm("mle", "MLE"),)), Arm("mle", "MLE"), 0, Path(), Queue())
    assert codes == [130]


def test_a_model_made_in_this_process_has_one_thread_as_arms_have():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
