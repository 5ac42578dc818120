"""What draws samples in a training: the model itself, or servers that a folder around the method knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from partway import registry
from partway.errors import ConfigError
from partway.learning.passes import evaluating
from partway.models.engine import Asked, Engine
from partway.models.loading import LanguageModel
from partway.sampling.local_engine import LocalEngine, end_ids
from partway.training.distributed import from_first, whole_weights
from partway.training.order import step_seed

if TYPE_CHECKING:
    from partway.training.trainer import SelfSamplingTrainer


def engine_of(trainer: SelfSamplingTrainer, language_model: LanguageModel) -> Engine:
    """The servers of the settings, if there are any, else the sampling tree on the model that is trained."""
    args, language = trainer.args, trainer.language
    if not args.servers or trainer.replay is not None:
        layout = trainer.scorer.layout
        return LocalEngine(language_model, language=language, layout=layout, memory=args.sampling_memory)
    engine: Engine = registry.part("engines", "http")(
        args.servers,
        language_model.codec,
        ends=end_ids(language_model),
        vocabulary=language_model.model.config.get_text_config(decoder=True).vocab_size,
        language=language,
        directory_of=trainer.run.weights,
        weight_sync=args.weight_sync,
        patience=args.engine_timeout,
        say=trainer.recorder.say,
        is_first=trainer.is_world_process_zero(),
        from_first=lambda value: from_first(trainer.accelerator, value),
    )
    return engine


def explorer_of(trainer: SelfSamplingTrainer, engine: Engine) -> tuple[Engine, Engine]:
    """What evaluations ask, and what exploring asks: the same engine, unless the settings say more.

    A folder around the method gives it weights seldom, or asks ahead. With `replay` the samples of that run
    take the place of new ones.
    """
    args, around = trainer.args, partial(registry.part, "explorers")
    if trainer.replay is not None:
        recorded: tuple[Engine, Engine] = around("recorded")(engine, trainer.replay)
        return recorded
    explorer = engine
    if args.weight_sync_steps > 1:
        explorer = around("seldom")(explorer, args.weight_sync_steps)
    if args.explore_ahead:
        if not engine.works_ahead:
            raise ConfigError(
                f"explore_ahead is {args.explore_ahead}, but the model that learns draws the samples itself; "
                "set engine to the addresses of servers, or explore_ahead to 0"
            )
        explorer = around("ahead")(explorer, args.explore_ahead, asked_of(trainer))
    return engine, explorer


def asked_of(trainer: SelfSamplingTrainer) -> Callable[[int], list[Asked]]:
    """What this process will ask for in a step, part by part."""

    def asked(step: int) -> list[Asked]:
        if step > max(trainer.state.max_steps, trainer.step):
            return []
        seed, settings = step_seed(trainer.args.seed, step, "explore"), trainer.args.sampling
        parts = trainer.batches.ahead(step - 1)
        return [(trainer.guide.requests(part, trainer.buffers, seed), settings, seed) for part in parts]

    return asked


@contextmanager
def sampling_mode(trainer: SelfSamplingTrainer, engine: Engine) -> Iterator[None]:
    """No dropout, no checkpointing of activations; all weights here, and told to the engine."""
    with evaluating(trainer.model), whole_weights(trainer.model):
        engine.update(trainer.model, trainer.state.global_step)
        yield
