"""Arms at the same time: each on a GPU of its own, where there are several."""

import os

import pytest
import torch

from partway.arms.side_by_side import arms_at_once, gpus, processes


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
    with processes(1) as pool:
        assert pool.submit(os.getenv, "CUDA_VISIBLE_DEVICES").result() == "4"


def test_without_a_gpu_nothing_is_said_of_one(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert gpus(2) == ["", ""]
    with processes(1) as pool:
        assert pool.submit(os.getenv, "CUDA_VISIBLE_DEVICES").result() is None
