"""What draws samples in a training: the model itself, or servers that a folder around the method knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partway import registry
from partway.models.engine import Engine
from partway.models.loading import LanguageModel
from partway.sampling.local_engine import LocalEngine

if TYPE_CHECKING:
    from partway.training.trainer import SelfSamplingTrainer


def engine_of(trainer: SelfSamplingTrainer, language_model: LanguageModel) -> Engine:
    """The servers of the settings, if there are any, else the sampling tree on the model that is trained."""
    args, language = trainer.args, trainer.language
    if not args.servers or trainer.replay is not None:
        layout = trainer.scorer.layout
        return LocalEngine(language_model, language=language, layout=layout, memory=args.sampling_memory)
    engine: Engine = registry.part("engines", "training")(trainer, language_model)
    return engine


def explorer_of(trainer: SelfSamplingTrainer, engine: Engine) -> tuple[Engine, Engine]:
    """What evaluations ask, and what exploring asks: the same engine, unless the settings say more.

    A folder around the method gives it weights seldom, or asks ahead. With `replay` the samples of that run
    take the place of new ones.
    """
    pair = engine, engine
    if trainer.replay is not None:
        pair = registry.part("explorers", "recorded")(engine, trainer.replay)
    elif trainer.args.weight_sync_steps > 1 or trainer.args.explore_ahead:
        pair = engine, registry.part("explorers", "ahead")(trainer, engine)
    return pair
