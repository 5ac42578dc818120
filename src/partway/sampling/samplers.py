"""Draw samples from a model in this process: by the sampling tree, or by a sampler that a folder adds.

A task says which prompts to complete, how, and what ends a completion: the language recognises the end of a
solution; if it misses one, the row goes on to its end-of-text token. A sampler is checked at start: its
log-probs must be those of one text at a time.
"""

from __future__ import annotations

import logging
import math
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from partway import registry
from partway.language import Language
from partway.learning.layout_check import REFUSALS, agrees, flaw_found, refusal
from partway.learning.layouts import Bundle, Flat, hindrance, score
from partway.learning.token_tree import Targets, grow
from partway.models.engine import SamplingSettings
from partway.models.text import Codec
from partway.sampling.cache import RowCache
from partway.sampling.drawing import streams
from partway.sampling.frontier import Ended, Frontier, Streams


class AnswerWatch:
    """Recognises finished rows by their tokens, and decodes each distinct line once."""

    def __init__(self, codec: Codec, vocabulary_size: int, language: Language) -> None:
        self.codec = codec
        self.language = language
        texts = codec.token_texts(vocabulary_size)
        self.newlines = frozenset(token for token, text in enumerate(texts) if "\n" in text)
        self.has_newline = np.array(["\n" in text for text in texts])
        self._line = lru_cache(maxsize=1 << 16)(codec.decode)

    def closes(self, tokens: Sequence[int]) -> bool:
        """Whether `tokens`, the last of which has a newline, end the solution."""
        # Lines are few and known, whole texts are many: each line is decoded once.
        text = "".join(map(self._line, self._lines(tokens)))
        return self.language.end(text) is not None or self.codec.end_of_answer(text) is not None

    def _lines(self, tokens: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """The tokens up to each newline, and those that follow the last."""
        start = 0
        for place, token in enumerate(tokens, 1):
            if token in self.newlines:
                yield tuple(tokens[start:place])
                start = place
        if start < len(tokens):
            yield tuple(tokens[start:])


@dataclass(frozen=True)
class SamplingTask:
    """Of each prompt the streams of random numbers of its samples, and the longest completion.

    At most `budget` rows are held at a time, of at most `prompt_budget` prompts (None: of any). A completion
    ends with a token that `is_end`, or where `watch` sees the end of a solution. Prompts of at most
    `longest_packed` tokens may be read in one row, each attending to itself.
    """

    prompts: Sequence[Sequence[int]]
    streams: Sequence[NDArray[np.uint64]]
    limits: Sequence[int]
    settings: SamplingSettings
    budget: int
    is_end: NDArray[np.bool_]
    watch: AnswerWatch | None = None
    longest_packed: int = 0
    prompt_budget: int | None = None
    on_drawn: Callable[[int], None] | None = None  # told how many samples have ended


Drawn = tuple[list[Ended], int]  # what has ended of each prompt, and how many tokens the model read
Waiting = tuple[int, Streams]  # a prompt's number, with the streams of its samples that have no row


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

    def complete(self, model: PreTrainedModel, task: SamplingTask) -> Drawn:
        """Every sample that the task asks for; the model is in evaluation mode, without gradients."""


@dataclass(frozen=True)
class TreeSampler:
    """The sampling tree: rows of all lengths together; `cache` keeps their keys and values.

    If it `shares_prompts`, those of a prompt are kept once for all of its rows.
    """

    cache: Callable[[int], Any] = RowCache
    name = "tree"
    is_checked = True

    @property
    def shares_prompts(self) -> bool:
        """Whether rows are not whole."""
        return self.cache is not RowCache

    @property
    def fallback(self) -> Sampler:
        """Whole rows, then rows in step."""
        if self.shares_prompts:
            return TreeSampler()
        in_step: Sampler = registry.part("samplers", "own_cache")
        return in_step

    def complete(self, model: PreTrainedModel, task: SamplingTask) -> Drawn:
        """Rows are admitted as others end."""
        return complete_on(Frontier(model, task, self.cache(task.budget)), task)


def complete_on(frontier: Frontier, task: SamplingTask) -> Drawn:
    """Grow a tree until every sample that the task asks for has ended."""
    admission = Admission(task)
    while admission.waiting or len(frontier.rows):
        frontier.admit(admission.admissible(frontier))
        admission.return_evicted(frontier.advance())
        if task.on_drawn is not None:
            task.on_drawn(frontier.drawn)
    return frontier.ended, frontier.tokens_computed


class Admission:
    """Admits as many prompts as will probably fit into the budget of rows, the longest prompts first.

    What waits are all samples at first, and again those whose rows had to make room. A prompt needs about one
    row per distinct completion. Their share is estimated from those that ended, and from the paper's regime
    as if that were a hundred samples more.
    """

    def __init__(self, task: SamplingTask) -> None:
        self.budget = task.budget
        self.prompt_budget = task.budget if task.prompt_budget is None else task.prompt_budget
        self.waiting = deque(sorted(enumerate(task.streams), key=lambda one: -len(task.prompts[one[0]])))

    def admissible(self, frontier: Frontier) -> list[Waiting]:
        """What to admit now; at least one if there are no rows."""
        if not self.waiting:
            return []
        # The paper's regime: of 100 samples of a fine-tuned model about 30 are distinct.
        share = (30 + frontier.distinct) / (100 + frontier.drawn)
        room = self.budget - frontier.expected_rows(share)
        admitted: list[Waiting] = []
        if len(frontier.rows) and room < self.budget / 4:  # a few large forwards beat many small ones
            return admitted
        prompts = self.prompt_budget - frontier.live_prompts
        while self.waiting and (len(admitted) < prompts or not (admitted or len(frontier.rows))):
            need = max(1, math.ceil(share * len(self.waiting[0][1])))
            if need > room and (admitted or len(frontier.rows)):
                break
            admitted.append(self.waiting.popleft())
            room -= need
        return admitted

    def return_evicted(self, evicted: Iterable[Waiting]) -> None:
        """Let evicted samples start again; as their numbers are their own, they will draw the same tokens."""
        self.waiting.extendleft(evicted)


LENGTHS = (3, 12, 40)  # of prompts that are in one batch
SAMPLES, LENGTH = 2, 6  # so that rows split, and go on after tokens they drew
LONGEST_WINDOW = 1024  # longer ones are not filled for a check

logger = logging.getLogger(__name__)


def checked_sampler(model: PreTrainedModel, wanted: Sampler | None = None, *, pad_id: int = 0) -> Sampler:
    """The first of `wanted` (default: the fastest) and its fallbacks that is right for the model.

    The model is in evaluation mode.
    """
    sharing = registry.parts("samplers").get("shared_prompts")
    wanted = wanted or (sharing and sharing.load()(model)) or TreeSampler()
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
    if isinstance(sampler, TreeSampler) and (reason := hindrance(model)):
        return reason
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


def token_bytes(model: PreTrainedModel) -> int:
    """Keys and values of a token, as if every layer kept them."""
    config = model.config.get_text_config(decoder=True)
    all_heads = getattr(config, "num_attention_heads", None) or 1
    heads = getattr(config, "num_key_value_heads", None) or all_heads
    head_size = getattr(config, "head_dim", None) or config.hidden_size // all_heads
    return int(2 * config.num_hidden_layers * heads * head_size * model.dtype.itemsize)
