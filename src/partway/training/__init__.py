"""Explore, learn, checkpoint, resume (Algorithms 1 and 3). Names that need torch are imported when used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partway.training.config import SelfSamplingConfig as SelfSamplingConfig
    from partway.training.trainer import SelfSamplingTrainer as SelfSamplingTrainer

_LAZY = {"SelfSamplingConfig": "partway.training.config", "SelfSamplingTrainer": "partway.training.trainer"}

__all__ = ["SelfSamplingConfig", "SelfSamplingTrainer"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'partway.training' has no attribute {name!r}")
