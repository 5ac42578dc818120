"""Sampling on the tree of distinct prefixes: exactly n independent samples at the cost of distinct ones.

A row is a distinct live prefix and holds the samples that have drawn it. One forward extends all rows by a
token, every sample draws its next token from its row's distribution, and a row becomes its distinct
children. See docs/sampling.md for why this is exact and what is reproducible.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from partway.errors import ModelError
from partway.models.drawing import streams
from partway.models.frontier import Frontier, Group, Leaf
from partway.models.loading import LanguageModel
from partway.models.settings import SamplingSettings
from partway.models.stopping import AnswerWatch
from partway.solution import ANSWER_VARIABLE

DEFAULT_BYTES = 1 << 30  # of keys, values and logits, if no row budget is given
MAX_DEFAULT_ROWS = 1024


@dataclass(frozen=True, slots=True)
class TreePrompt:
    """Tokens to continue, how many samples of the continuation, and a key that names their randomness."""

    tokens: Sequence[int]
    count: int
    key: str


@dataclass(frozen=True, slots=True)
class TokenSample:
    """A distinct completion without its end-of-text token, and how many samples drew it.

    `log_probs` are the model's own, at temperature 1 and unfiltered, one per drawn token (end-of-text, if
    drawn, included). A sample that was cut off by length is not `finished`.
    """

    tokens: tuple[int, ...]
    count: int
    finished: bool
    log_probs: tuple[float, ...]

    @property
    def log_prob(self) -> float:
        """The log-probability of all drawn tokens."""
        return math.fsum(self.log_probs)


class TreeSampler:
    """Draws completions from one model, holding at most `row_budget` rows at a time.

    Without a budget there are as many rows as a gigabyte of keys, values and logits allows. A completion ends
    at an end-of-text token, at the line that assigns `answer_variable` (None: never), or at a length.
    """

    def __init__(
        self,
        language_model: LanguageModel,
        *,
        row_budget: int | None = None,
        answer_variable: str | None = ANSWER_VARIABLE,
    ) -> None:
        self.model = language_model.model
        if getattr(self.model, "_is_stateful", False):
            raise ModelError(
                f"a {self.model.config.model_type} model keeps a running state instead of keys and values, so"
                " its rows cannot be split; use a transformer"
            )
        self.context_length = language_model.context_length
        self.row_budget = row_budget
        self.end_ids = _end_ids(language_model)
        self.watch = None
        if answer_variable is not None:
            self.watch = AnswerWatch(language_model.codec, self.model.config.vocab_size, answer_variable)
        self.tokens_computed = 0  # by all calls so far, prompts included

    def sample(
        self, prompts: Sequence[TreePrompt], settings: SamplingSettings, seed: int
    ) -> list[list[TokenSample]]:
        """For every prompt its distinct completions, the most frequent first; counts sum to the prompt's."""
        groups = [self._group(number, prompt, settings, seed) for number, prompt in enumerate(prompts)]
        samples = sum(prompt.count for prompt in prompts)
        budget = min(self.row_budget or self._default_budget(groups), max(samples, 1))
        frontier = Frontier(self.model, settings, budget=budget, end_ids=self.end_ids, watch=self.watch)
        queue = _Queue(groups, budget)
        leaves: list[list[Leaf]] = [[] for _ in prompts]
        with evaluating(self.model), torch.no_grad():
            while queue.waiting or len(frontier.rows):
                frontier.admit(queue.admissible(frontier))
                ended, evicted = frontier.advance()
                queue.learn(ended)
                queue.return_evicted(evicted)
                for leaf in ended:
                    leaves[leaf.prompt].append(leaf)
        self.tokens_computed += frontier.tokens_computed
        return [_merged(of_prompt) for of_prompt in leaves]

    def _group(self, number: int, prompt: TreePrompt, settings: SamplingSettings, seed: int) -> Group:
        room = self.context_length - len(prompt.tokens)
        if room < 1:
            raise ModelError(
                f"{prompt.key}: a prompt of {len(prompt.tokens)} tokens leaves no room in the context of"
                f" {self.context_length} tokens; shorten the question or use a model with a longer context"
            )
        limit = min(settings.max_completion_length, room)
        return Group(number, prompt.tokens, limit, streams(seed, prompt.key, prompt.count))

    def _default_budget(self, groups: Sequence[Group]) -> int:
        config = self.model.config
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        head_size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        length = max((len(group.tokens) + group.limit for group in groups), default=1)
        values = 2 * config.num_hidden_layers * heads * head_size * length
        row_bytes = values * self.model.dtype.itemsize + 4 * config.vocab_size * torch.float32.itemsize
        return int(min(max(DEFAULT_BYTES // row_bytes, 1), MAX_DEFAULT_ROWS))


class _Queue:
    """Groups that wait for rows, the longest prompts first; admits as many as will probably fit.

    A group needs about one row per distinct completion. Their share is estimated from those that ended.
    """

    def __init__(self, groups: Sequence[Group], budget: int) -> None:
        self.groups = groups
        self.budget = budget
        self.waiting = deque(sorted(groups, key=lambda group: -len(group.tokens)))
        self.distinct, self.drawn = 30, 100  # the paper's regime, worth a hundred samples of evidence

    def admissible(self, frontier: Frontier) -> list[Group]:
        """The groups to admit now; at least one if there are no rows."""
        if not self.waiting:
            return []
        share = self.distinct / self.drawn
        room = self.budget - frontier.expected_rows(share)
        admitted: list[Group] = []
        if len(frontier.rows) and room < self.budget / 4:  # a few large forwards beat many small ones
            return admitted
        while self.waiting:
            need = max(1, math.ceil(share * len(self.waiting[0].streams)))
            if need > room and (admitted or len(frontier.rows)):
                break
            admitted.append(self.waiting.popleft())
            room -= need
        return admitted

    def learn(self, ended: Sequence[Leaf]) -> None:
        """Count distinct completions among all that ended."""
        self.distinct += len(ended)
        self.drawn += sum(leaf.count for leaf in ended)

    def return_evicted(self, evicted: Sequence[tuple[int, NDArray[np.uint64]]]) -> None:
        """Let evicted samples start again; as their numbers are their own, they will draw the same tokens."""
        for number, of_samples in evicted:
            self.waiting.appendleft(replace(self.groups[number], streams=of_samples))


def _merged(leaves: Sequence[Leaf]) -> list[TokenSample]:
    """One sample per distinct completion, also if some of its samples had to start again."""
    counts: dict[tuple[tuple[int, ...], bool], int] = {}
    log_probs: dict[tuple[tuple[int, ...], bool], tuple[float, ...]] = {}
    for leaf in leaves:
        key = leaf.tokens, leaf.finished
        counts[key] = counts.get(key, 0) + leaf.count
        log_probs.setdefault(key, leaf.log_probs)
    samples = [
        TokenSample(tokens, count, done, log_probs[tokens, done]) for (tokens, done), count in counts.items()
    ]
    return sorted(samples, key=lambda sample: (-sample.count, sample.tokens, sample.finished))


def _end_ids(language_model: LanguageModel) -> list[int]:
    """The codec's end-of-text token and those the model's own generation settings stop at."""
    settings = getattr(language_model.model, "generation_config", None)
    others = getattr(settings, "eos_token_id", None)
    others = [] if others is None else [others] if isinstance(others, int) else list(others)
    return sorted({language_model.codec.eos_id, *others})


@contextmanager
def evaluating(model: PreTrainedModel) -> Iterator[None]:
    """The model in evaluation mode, afterwards in whatever mode it was."""
    if not model.training:
        yield
        return
    model.eval()
    try:
        yield
    finally:
        model.train()
