"""What a run was made with: versions, machine and seed, and what identifies its problems and its model."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from partway.problem import Problem
from partway.runs.digests import problems_digest
from partway.runs.rows import now
from partway.training.config import SelfSamplingConfig

SAMPLED_VALUES = 4096  # of each weight: to read all values of a large model takes minutes


def model_digest(model: Any) -> str:
    """A fingerprint of names, shapes and a sample of the values of all weights."""
    hasher = hashlib.sha256()
    for name, weight in model.named_parameters():
        stride = max(1, weight.numel() // SAMPLED_VALUES)
        # As doubles: NumPy has no bfloat16, and every smaller type fits without rounding.
        values = weight.detach().reshape(-1)[::stride].double().cpu().numpy()
        hasher.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
        hasher.update(values.tobytes())
    return hasher.hexdigest()


def environment_of(
    config: SelfSamplingConfig, model: Any, train: Sequence[Problem], dev: Sequence[Problem]
) -> dict[str, Any]:
    """Versions, machine, seed and fingerprints: the content of environment.json."""
    packages = ("partway", "torch", "transformers", "accelerate")
    return {
        "python": platform.python_version(),
        **{package: _version(package) for package in packages},
        "platform": platform.platform(),
        "device": config.device.type,
        "processes": config.world_size,
        "problems_per_step": config.problems_per_step,
        "command": " ".join(sys.argv),
        "seed": config.seed,
        "started": now(),
        # One entry for every time it goes on after a stop.
        "resumed": [],
        "data": {"train": _data_identity(train), "dev": _data_identity(dev) if dev else None},
        "model": {
            "name": config.model_name_or_path,
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "sha256": model_digest(model),
        },
    }


def _data_identity(problems: Sequence[Problem]) -> dict[str, Any]:
    return {"problems": len(problems), "sha256": problems_digest(problems)}


def _version(package: str) -> str:
    if package == "partway":  # may run from a checkout that was never installed
        from partway import __version__

        return __version__
    return version(package)
