"""Explore, learn, checkpoint, resume (Algorithms 1 and 3). Names that need torch are imported when used."""

from typing import TYPE_CHECKING

from partway.registry import lazy_names

if TYPE_CHECKING:
    from partway.training.config import SelfSamplingConfig
    from partway.training.trainer import SelfSamplingTrainer

__all__ = ["SelfSamplingConfig", "SelfSamplingTrainer"]

__getattr__ = lazy_names(__name__, {"SelfSamplingConfig": "config", "SelfSamplingTrainer": "trainer"})
