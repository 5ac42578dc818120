"""The check at start that a sampler is right for a model: its log-probs are those of one text at a time."""

from __future__ import annotations

import logging
import random
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from partway.models.agreement import agrees
from partway.models.drawing import streams
from partway.models.layouts import Bundle, Flat, score
from partway.models.samplers import Sampler, TreeSampler
from partway.models.sampling_task import SamplingTask, token_bytes
from partway.models.settings import SamplingSettings
from partway.models.targets import Targets
from partway.models.token_tree import grow

LENGTHS = (3, 12, 40)  # of prompts; together in one batch, a sampler must tell them apart
SAMPLES, LENGTH = 2, 6  # so that rows split, and go on behind tokens they drew
LONGEST_WINDOW = 1024  # longer ones are not filled for a check
WORTH_SHARING = 16_384  # bytes of a token's keys and values; with fewer, launching more operations costs more

logger = logging.getLogger(__name__)


def checked_sampler(model: PreTrainedModel, wanted: Sampler | None = None, *, pad_id: int = 0) -> Sampler:
    """The first of `wanted` (default: the fastest) and its fallbacks that is right for the model.

    The model is in evaluation mode.
    """
    wanted = wanted or TreeSampler(shares_prompts=_prompts_are_worth_sharing(model))
    sampler = wanted
    while sampler.fallback is not None and not _is_right(model, sampler, pad_id):
        sampler = sampler.fallback
    if sampler.name != wanted.name:
        logger.warning(
            "%s cannot be sampled on a tree of shared beginnings; using %s instead: the same distribution, "
            "but slower",
            type(model).__name__,
            "rows in step behind the model's own cache" if sampler.fallback else "whole texts at every step",
        )
    return sampler


def _is_right(model: PreTrainedModel, sampler: Sampler, pad_id: int) -> bool:
    """Whether what the sampler says of its draws is what one text at a time says."""
    prompts = _prompts(model)
    try:
        with torch.no_grad():
            ended, _ = sampler.complete(model, _task(model, prompts))
            drawn = [{tokens: kept[1] for (tokens, _), kept in of_prompt.items()} for of_prompt in ended]
            found = torch.tensor([log_prob for of_prompt in drawn for log_prob in of_prompt.values()])
            texts = [Targets.of(tuple(p), tuple(of)) for p, of in zip(prompts, drawn, strict=True)]
            others = [
                Targets.of(tuple(p), tuple(of)) for p, of in zip(_prompts(model, 1), drawn, strict=True)
            ]

            def plain() -> Tensor:
                return _one_at_a_time(model, texts, pad_id)

            return agrees(model, found, plain, (_one_at_a_time(model, others, pad_id) - plain()).norm())
    except (RuntimeError, AttributeError, LookupError, TypeError, ValueError) as error:
        logger.info("%s cannot be sampled with %s: %s", type(model).__name__, sampler.name, error)
        return False


def _prompts_are_worth_sharing(model: PreTrainedModel) -> bool:
    """Whether attention is ours to compute and sees everything, and keys and values are large enough."""
    is_plain = model.config._attn_implementation == "sdpa" and not _windows(model)
    return is_plain and token_bytes(model) >= WORTH_SHARING


def _windows(model: PreTrainedModel) -> list[int]:
    """How far local attention sees, if any."""
    names = ("sliding_window", "window_size", "attention_window_size")
    found = (getattr(_config(model), name, None) for name in names)
    return [window for window in found if isinstance(window, int) and window > 0]


def _task(model: PreTrainedModel, prompts: list[list[int]]) -> SamplingTask:
    """Completions of a few tokens that nothing but their length ends."""
    return SamplingTask(
        prompts,
        [streams(0, str(number), SAMPLES) for number in range(len(prompts))],
        [LENGTH] * len(prompts),
        SamplingSettings(temperature=1.0, max_completion_length=LENGTH),
        budget=SAMPLES * len(prompts),
        is_end=np.zeros(_config(model).vocab_size, bool),
    )


def _prompts(model: PreTrainedModel, seed: int = 0) -> list[list[int]]:
    """Random prompts of different lengths, the last one longer than the window of local attention, if any."""
    config = _config(model)
    window = min((window for window in _windows(model) if window <= LONGEST_WINDOW), default=0)
    room = (getattr(config, "max_position_embeddings", None) or LONGEST_WINDOW) - LENGTH
    lengths = [*LENGTHS[:-1], max(LENGTHS[-1], window + LENGTH)]
    rng = random.Random(seed)
    return [[rng.randrange(config.vocab_size) for _ in range(max(1, min(n, room)))] for n in lengths]


def _one_at_a_time(model: PreTrainedModel, texts: list[Targets], pad_id: int) -> Tensor:
    """log P of every completion; those of one prompt, all of one length, are rows of one pass."""
    passes = [
        Bundle(Flat(), tuple((grow(text, [k], index=index),) for k in range(len(text.targets))))
        for index, text in enumerate(texts)
    ]
    return torch.cat(score(model, passes, texts, pad_id)).cpu()


def _config(model: PreTrainedModel) -> Any:
    return model.config.get_text_config(decoder=True)
