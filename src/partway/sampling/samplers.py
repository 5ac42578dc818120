"""Checks at start that a sampler is right for a model: log-probs must be those of one text at a time."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from partway.learning.layout_check import REFUSALS, agrees, flaw_found, refusal
from partway.learning.layouts import Bundle, Flat, score
from partway.learning.token_tree import Targets, grow
from partway.models.engine import SamplingSettings
from partway.sampling.drawing import streams
from partway.sampling.frontier import Drawn, SamplingTask


class Sampler(Protocol):
    """A way of drawing samples."""

    @property
    def name(self) -> str:
        """What it is called in messages and reports."""

    @property
    def is_checked(self) -> bool:
        """Whether it may be wrong for a model."""

    @property
    def fallback(self) -> Sampler:
        """What to try for a model for which this is wrong."""

    def hindrance(self, model: PreTrainedModel) -> str | None:
        """Why the model cannot be sampled in this way at all, if so."""

    def complete(self, model: PreTrainedModel, task: SamplingTask) -> Iterator[Drawn]:
        """The samples of every prompt, once all of them have ended; the model is in evaluation mode."""


LENGTHS = (3, 12, 40)  # of prompts that are in one batch
SAMPLES, LENGTH = 2, 6  # so that rows split, and go on after tokens they drew
LONGEST_WINDOW = 1024  # longer ones are not filled for a check

logger = logging.getLogger(__name__)


def checked_sampler(model: PreTrainedModel, wanted: Sampler, *, pad_id: int = 0) -> Sampler:
    """The first of `wanted` and its fallbacks that is right for the model, which is in evaluation mode."""
    sampler, flaws = wanted, []
    while sampler.is_checked and (flaw := flaw_found(model, sampler, pad_id, _flaw)):
        flaws.append(flaw)
        sampler = sampler.fallback
    if sampler.name != wanted.name:
        logger.warning(
            "%s cannot be sampled on a tree of shared beginnings (it %s); using %s instead: the same "
            "distribution, but slower",
            type(model).__name__,
            flaws[0],
            "rows in step after the model's own cache" if sampler.is_checked else "whole texts at every step",
        )
    return sampler


def _flaw(model: PreTrainedModel, sampler: Sampler, pad_id: int) -> str | None:
    """Why not to use the sampler, if it says of its draws something else than one text at a time does."""
    if reason := sampler.hindrance(model):
        return reason
    prompts = _prompts(model)
    try:
        with torch.no_grad():
            found_of = {number: ended for number, ended, _ in sampler.complete(model, _task(model, prompts))}
            drawn = [{of[0]: kept[1] for of, kept in found_of[n].items()} for n in range(len(prompts))]
            found = torch.tensor([log_prob for of_prompt in drawn for log_prob in of_prompt.values()])
            texts = [Targets.of(tuple(p), tuple(of)) for p, of in zip(prompts, drawn, strict=True)]
            others = [
                Targets.of(tuple(p), tuple(of)) for p, of in zip(_prompts(model, 1), drawn, strict=True)
            ]

            def plain() -> Tensor:
                return _one_at_a_time(model, texts, pad_id)

            expected = plain()
            scale = (_one_at_a_time(model, others, pad_id) - expected).norm()
            same = agrees(model, found, expected, scale, plain)
    except REFUSALS as error:
        return f"fails: {refusal(error)}"
    return None if same else "draws otherwise than one text at a time"


def windows(model: PreTrainedModel) -> list[int]:
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
    window = min((window for window in windows(model) if window <= LONGEST_WINDOW), default=0)
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
