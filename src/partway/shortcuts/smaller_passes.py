"""A step too large for a GPU is learned in smaller passes: their gradients add up to its own."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from partway.problem import Problem

if TYPE_CHECKING:
    from partway.training.trainer import SelfSamplingTrainer

LEAST = 64  # tokens; where these do not fit, smaller passes do not help


def learn(trainer: SelfSamplingTrainer, model: Any, problems: Sequence[Problem]) -> Tensor:
    """Learn; if memory does not suffice, forget the gradients and learn in passes of half the tokens."""
    while (loss := _tried(trainer, model, problems)) is None:
        model.zero_grad()
        gc.collect()
        torch.cuda.empty_cache()
        before = trainer.scorer.tokens_per_pass
        trainer.scorer.tokens_per_pass = before // 2
        trainer.recorder.say(
            f"a pass of {before} tokens is too large for the GPU; from now on they have {before // 2}"
        )
    return loss


def _tried(trainer: SelfSamplingTrainer, model: Any, problems: Sequence[Problem]) -> Tensor | None:
    """The loss; None if memory does not suffice and less may help."""
    try:
        return trainer.learn(model, problems)
    except torch.OutOfMemoryError:
        # Other processes wait for this one, and gradients of an earlier part of the step cannot be forgotten.
        is_alone = trainer.args.world_size == 1 and trainer.args.gradient_accumulation_steps == 1
        if not is_alone or trainer.scorer.tokens_per_pass < 2 * LEAST:
            raise
        return None
