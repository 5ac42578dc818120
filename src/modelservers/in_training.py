"""Servers in a training: made from its settings, given its weights, and asked ahead of its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from modelservers.ahead import Ahead, Seldom
from modelservers.http_engine import HttpEngine
from partway.errors import ConfigError
from partway.models.engine import Asked, Engine
from partway.models.loading import LanguageModel
from partway.sampling.drawing import step_seed
from partway.sampling.local_engine import end_ids
from partway.training.distributed import from_first

if TYPE_CHECKING:
    from partway.training import SelfSamplingTrainer


def engine_of(trainer: SelfSamplingTrainer, language_model: LanguageModel) -> HttpEngine:
    """The servers that the settings of a training name."""
    args = trainer.args
    return HttpEngine(
        args.servers,
        language_model.codec,
        ends=end_ids(language_model),
        vocabulary=language_model.model.config.get_text_config(decoder=True).vocab_size,
        language=trainer.language,
        directory_of=trainer.run.weights,
        weight_sync=args.weight_sync,
        patience=args.engine_timeout,
        say=trainer.recorder.say,
        is_first=trainer.is_world_process_zero(),
        from_first=lambda value: from_first(trainer.accelerator, value),
    )


def explorer_of(trainer: SelfSamplingTrainer, engine: Engine) -> Engine:
    """The engine, given weights as seldom and asked as far ahead as the settings say."""
    args, explorer = trainer.args, engine
    if args.weight_sync_steps > 1:
        explorer = Seldom(explorer, args.weight_sync_steps)
    if not args.explore_ahead:
        return explorer
    if not engine.works_ahead:
        raise ConfigError(
            f"explore_ahead is {args.explore_ahead}, but the model that learns draws the samples itself; "
            "set engine to the addresses of servers, or explore_ahead to 0"
        )
    return Ahead(explorer, args.explore_ahead, asked_of(trainer))


def asked_of(trainer: SelfSamplingTrainer) -> Callable[[int], list[Asked]]:
    """What this process will ask for in a step, part by part."""

    def asked(step: int) -> list[Asked]:
        if step > max(trainer.state.max_steps, trainer.step):
            return []
        seed, settings = step_seed(trainer.args.seed, step, "explore"), trainer.args.sampling
        parts = trainer.batches.ahead(step - 1)
        return [(trainer.guide.requests(part, trainer.buffers, seed), settings, seed) for part in parts]

    return asked
