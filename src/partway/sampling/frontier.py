"""The frontier of a sampling tree: its live rows, the samples they hold, and the step that extends all.

Array names end in their axes: R rows, S samples, C children, V vocabulary, L completion length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from partway.learning.passes import logits_at, uploaded
from partway.learning.token_tree import Integers
from partway.learning.tree_attention import blocks, tree_mask
from partway.models.engine import SamplingSettings
from partway.models.text import AnswerWatch
from partway.sampling.cache import place
from partway.sampling.drawing import draw, fetched, to_draw_from, uniforms

PREFILL_TOKENS = 8192  # prompts are read in batches of at most this many tokens, padding included
WORTH_READING_APART = 32  # tokens with which all of them begin

Streams = NDArray[np.uint64]

ROW = np.dtype(
    [
        ("prompt", np.int64),
        ("order", np.int64),  # the row's prompt was the order-th to be admitted
        ("limit", np.int64),  # the longest completion
        ("depth", np.int64),  # tokens drawn so far
        ("next", np.int64),  # the last token, which the model has not read yet
        ("log_prob", np.float64),  # of the tokens drawn so far, at temperature 1 and unfiltered
        ("drafted", np.int64),  # tokens drawn so far that had been read ahead, which a folder may do
    ]
)

# What has ended of one prompt: the tokens drawn, end-of-text too, and whether they are finished (not cut off
# by length), to the number of samples that drew them, their log-probability and how many were read ahead.
Ended = dict[tuple[tuple[int, ...], bool], tuple[int, float, int]]
Drawn = tuple[int, Ended, int]  # a prompt's number, its samples, tokens computed since the prompt before


@dataclass(frozen=True)
class SamplingTask:
    """Of each prompt the streams of random numbers of its samples, and the longest completion.

    At most `budget` rows are held at a time, of at most `prompt_budget` prompts (None: of any). A completion
    ends with a token that `is_end`, or where `watch` sees the end of a solution. Prompts of at most
    `longest_packed` tokens may be read in one row, each attending to itself.
    """

    prompts: Sequence[Sequence[int]]
    streams: Sequence[Streams]
    limits: Sequence[int]
    settings: SamplingSettings
    budget: int
    is_end: NDArray[np.bool_]
    watch: AnswerWatch | None = None
    longest_packed: int = 0
    prompt_budget: int | None = None
    on_drawn: Callable[[int], None] | None = None  # told how many samples have ended


@dataclass(frozen=True, slots=True)
class Children:
    """The distinct continuations of all rows by a token, sorted by row.

    `of_samples` says which child each sample drew; the other arrays have an entry per child. `ahead` counts
    the tokens before it that were read ahead, which stand after the row's own.
    """

    parents: Integers
    ahead: Integers
    tokens: Integers
    log_probs: NDArray[np.float64]  # of all tokens that a child adds
    of_samples: Integers

    @property
    def counts(self) -> Integers:
        """How many samples drew each child."""
        return np.bincount(self.of_samples, minlength=len(self.parents))


class Frontier:
    """At most `task.budget` rows, each a distinct live prefix of the samples in `rows_S` that point to it."""

    def __init__(self, model: PreTrainedModel, task: SamplingTask, cache: Any) -> None:
        self.model, self.task, self.device = model, task, model.device
        self.unread = False  # whether the rows are prompts which the next forward reads whole
        self.cache = cache
        self.rows = np.zeros(0, ROW)
        self.tokens_RL = np.zeros((task.budget, task.settings.max_completion_length), np.int32)
        self.rows_S: Integers = np.zeros(0, np.int64)
        self.streams_S: Streams = np.zeros(0, np.uint64)
        self.admitted = 0
        self.ended: list[Ended] = [{} for _ in task.prompts]
        self.distinct = self.drawn = 0  # completions that ended so far, and the samples that drew them
        self.missing = [len(samples) for samples in task.streams]  # of a prompt, those that have not ended
        self.over = [number for number, missing in enumerate(self.missing) if missing == 0]
        self.tokens_computed = 0  # since a prompt was finished

    def admit(self, waiting: Sequence[tuple[int, Streams]]) -> None:
        """Give each prompt that waits a row with its samples, and read it, all but its last token.

        If there are no rows yet, reading may be left to the next forward.
        """
        self.unread = len(self.rows) == 0 and self._may_be_packed(waiting)
        for batch in [waiting] if self.unread else self._batches(waiting):
            prompts = [self.task.prompts[number] for number, _ in batch]
            if not self.unread:
                self._prefill(prompts)
            first, new = len(self.rows), np.zeros(len(batch), ROW)
            new["prompt"] = [number for number, _ in batch]
            new["order"] = self.admitted + np.arange(len(batch))
            new["limit"] = [self.task.limits[number] for number, _ in batch]
            new["next"] = [prompt[-1] for prompt in prompts]
            self.rows = np.concatenate([self.rows, new])
            self.admitted += len(batch)
            sizes = [len(of_prompt) for _, of_prompt in batch]
            self.rows_S = np.concatenate([self.rows_S, np.repeat(np.arange(first, len(self.rows)), sizes)])
            self.streams_S = np.concatenate([self.streams_S, *(of_prompt for _, of_prompt in batch)])

    @property
    def live_prompts(self) -> int:
        """How many prompts have rows."""
        return len(np.unique(self.rows["order"]))

    def expected_rows(self, share: float) -> int:
        """How many rows there may come to be if a `share` of the samples stays distinct."""
        if len(self.rows) == 0:
            return 0
        orders_R = self.rows["order"] - self.rows["order"].min()
        samples = np.bincount(orders_R[self.rows_S])
        return int(np.maximum(np.bincount(orders_R), np.ceil(share * samples)).sum())

    def advance(self) -> list[tuple[int, Streams]]:
        """Extend every sample by a token: a row becomes its distinct children.

        Returns the prompts and samples that must start again because their rows would exceed the budget.
        """
        children = self._draw_children(*(self._read_prompts() if self.unread else self._forward()))
        self.unread = False
        depths_C = self.rows["depth"][children.parents] + children.ahead
        finished_C = self._is_finished(children)
        ended_C = finished_C | (depths_C + 1 >= self.rows["limit"][children.parents])
        self._end(children, ended_C, finished_C)
        kept_C = self._within_budget(children, ~ended_C)
        evicted_C = ~(ended_C | kept_C)
        evicted = self._evicted(children, evicted_C) if evicted_C.any() else []
        self._become(children, kept_C)
        return evicted

    def finished(self) -> Iterator[Drawn]:
        """The prompts all of whose samples have ended, each once."""
        over, self.over = self.over, []
        for number in over:
            yield number, self.ended[number], self.tokens_computed
            self.ended[number], self.tokens_computed = {}, 0

    def _batches(self, waiting: Sequence[tuple[int, Streams]]) -> Iterator[list[tuple[int, Streams]]]:
        """What to read in one forward each."""
        batch: list[tuple[int, Streams]] = []
        longest = 0
        for one in waiting:
            longest = max(longest, len(self.task.prompts[one[0]]))
            if batch and longest * (len(batch) + 1) > PREFILL_TOKENS:
                yield batch
                batch, longest = [], len(self.task.prompts[one[0]])
            batch.append(one)
        if batch:
            yield batch

    def _may_be_packed(self, waiting: Sequence[tuple[int, Streams]]) -> bool:
        """Whether one row can hold all prompts that wait, without padding."""
        lengths = [len(self.task.prompts[number]) for number, _ in waiting]
        return 0 < sum(lengths) <= PREFILL_TOKENS and max(lengths) <= self.task.longest_packed

    def _prefill(self, prompts: Sequence[Sequence[int]]) -> None:
        """Read all but the last token of each prompt."""
        lengths = np.array([len(prompt) - 1 for prompt in prompts])
        cache, longest = DynamicCache(), int(lengths.max())
        if longest:  # padding on the right is invisible to what stands before it, so no mask is needed
            ids = np.zeros((len(prompts), longest), np.int64)
            for row, prompt in zip(ids, prompts, strict=True):
                row[: len(prompt) - 1] = prompt[:-1]
            common = self._read_common_beginning(prompts, cache)
            self._run(torch.from_numpy(ids[:, common:]).to(self.device), 1, past_key_values=cache)
            # What is common was read once, and is counted below for every prompt.
            self.tokens_computed -= common * (len(prompts) - 1)
        self.cache.admit(cache, lengths)
        self.tokens_computed += int(lengths.sum())

    def _read_common_beginning(self, prompts: Sequence[Sequence[int]], cache: DynamicCache) -> int:
        """Read what all prompts begin with, such as a system prompt or examples, once; returns its length."""
        columns = zip(*(prompt[:-1] for prompt in prompts), strict=False)
        common = sum(1 for _ in takewhile(lambda tokens: len(set(tokens)) == 1, columns))
        if len(prompts) == 1 or common < WORTH_READING_APART:
            return 0
        # At least one token is left for the forward over all of them.
        common = min(common, max(len(prompt) for prompt in prompts) - 2)
        self._run(torch.tensor([prompts[0][:common]], device=self.device), 1, past_key_values=cache)
        cache.batch_repeat_interleave(len(prompts))
        return common

    def _read_prompts(self) -> tuple[Tensor, Tensor, Tensor]:
        """As `_forward`, when nothing is read yet: all prompts in one row, one after the other."""
        texts = [self.task.prompts[number] for number in self.rows["prompt"]]
        return self._read_packed(texts, np.zeros((len(texts), 1), np.int64))

    def _read_packed(
        self, texts: Sequence[Sequence[int]], ahead_RQ: Integers
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Read texts in one row, each attending to itself; the logits after the last tokens of each.

        `ahead_RQ` counts these from the last token of its prompt on.
        """
        sizes_R = np.array([len(text) for text in texts])
        lengths_R = sizes_R - 1 - ahead_RQ[:, -1]
        starts_R = np.cumsum(sizes_R) - sizes_R
        cache, last_RQ = DynamicCache(), (starts_R + lengths_R)[:, None] + ahead_RQ
        last, ids, places, read, bits, *seen = uploaded(
            self.device,
            last_RQ.flatten(),
            np.concatenate(texts, dtype=np.int64)[None],
            np.concatenate([np.arange(size) for size in sizes_R])[None],
            *self._numbers(last_RQ.shape[1]),
            *blocks(np.repeat(starts_R + sizes_R, sizes_R)),
        )
        logits = logits_at(
            self.model,
            last,
            input_ids=ids,
            position_ids=places,
            attention_mask=tree_mask(ids.shape[1], *seen),
            past_key_values=cache,
            use_cache=True,
        ).logits[0]
        self.cache.admit(cache, lengths_R, starts_R, ahead_RQ.shape[1])
        self.cache.step(ahead_RQ.shape[1])
        self.tokens_computed += int(sizes_R.sum())
        return to_draw_from(logits), read, bits

    def _forward(self) -> tuple[Tensor, Tensor, Tensor]:
        """The logits after the last token of every row, in float32; and the `_numbers`."""
        seen = self.cache.seen()
        ids, positions, read, bits, *seen = uploaded(
            self.device, self.rows["next"][:, None], self.cache.lengths[:, None], *self._numbers(), *seen
        )
        mask = self.cache.mask(self.model, *seen)
        logits_R1V = self._run(
            ids, 1, past_key_values=self.cache, position_ids=positions, attention_mask=mask
        )
        self.cache.step()
        self.tokens_computed += len(self.rows)
        return to_draw_from(logits_R1V[:, 0]), read, bits

    def _numbers(self, count: int = 1) -> tuple[Integers, Integers]:
        """Where each sample draws in the logits of `count` tokens a row, and its random numbers, as bits."""
        read_SQ = self.rows_S[:, None] * count + np.arange(count)
        depths_SQ = self.rows["depth"][self.rows_S][:, None] + np.arange(count)
        return read_SQ.flatten(), uniforms(self.streams_S[:, None], depths_SQ).view(np.int64).flatten()

    def _run(self, ids: Tensor, count: int, **inputs: object) -> Tensor:
        """The logits after the last `count` tokens of each row."""
        logits: Tensor = self.model(input_ids=ids, use_cache=True, logits_to_keep=count, **inputs).logits
        return logits[:, -count:]

    def _draw_children(self, logits_RV: Tensor, read: Tensor, bits: Tensor) -> Children:
        """Let every sample draw a token after its row; those that drew the same one share a child."""
        vocabulary = logits_RV.shape[-1]
        # Bits until now, since Apple's GPUs have no float64: there logits came to the CPU.
        rows_S, numbers_S = read.to(logits_RV.device), bits.to(logits_RV.device).view(torch.float64)
        drawn = draw(logits_RV, self.task.settings, rows_S, numbers_S)
        tokens_S, log_probs_S = fetched(logits_RV, rows_S, drawn)
        # A child is a place in the flattened logits: after which row, and which token is drawn there.
        keys_S = self.rows_S * vocabulary + tokens_S
        keys_C, first_C, of_S = np.unique(keys_S, return_index=True, return_inverse=True)
        parents_C, tokens_C = np.divmod(keys_C, vocabulary)
        return Children(parents_C, np.zeros_like(parents_C), tokens_C, log_probs_S[first_C], of_S)

    def _is_finished(self, children: Children) -> NDArray[np.bool_]:
        finished_C = self.task.is_end[children.tokens]
        if self.task.watch is not None:
            for child in np.flatnonzero(self.task.watch.has_newline[children.tokens] & ~finished_C):
                finished_C[child] = self.task.watch.closes(self._path(children, child))
        return finished_C

    def _path(self, children: Children, child: np.intp) -> list[int]:
        parent = children.parents[child]
        depth = self.rows["depth"][parent] + children.ahead[child]
        return [*self.tokens_RL[parent, :depth].tolist(), int(children.tokens[child])]

    def _end(self, children: Children, ended_C: NDArray[np.bool_], finished_C: NDArray[np.bool_]) -> None:
        counts_C = children.counts
        for child in np.flatnonzero(ended_C):
            parent = self.rows[children.parents[child]]
            key = tuple(self._path(children, child)), bool(finished_C[child])
            ended = self.ended[parent["prompt"]]
            # A completion can end twice, if some of its samples had to start again.
            count = int(counts_C[child]) + ended.get(key, (0,))[0]
            log_prob = float(parent["log_prob"] + children.log_probs[child])
            ended[key] = count, log_prob, int(parent["drafted"] + children.ahead[child])
            self.distinct += 1
            self.drawn += int(counts_C[child])
            self.missing[parent["prompt"]] -= int(counts_C[child])
            if self.missing[parent["prompt"]] == 0:
                self.over.append(int(parent["prompt"]))

    def _within_budget(self, children: Children, live_C: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The live children that there is room for; those of prompts admitted earlier go first."""
        live = np.flatnonzero(live_C)
        if len(live) <= self.task.budget:
            return live_C
        # Whoever began first goes on, so that every prompt comes to its end in time.
        by_age = np.argsort(self.rows["order"][children.parents[live]], kind="stable")
        kept_C = np.zeros_like(live_C)
        kept_C[live[by_age[: self.task.budget]]] = True
        return kept_C

    def _evicted(self, children: Children, evicted_C: NDArray[np.bool_]) -> list[tuple[int, Streams]]:
        streams_S = self.streams_S[evicted_C[children.of_samples]]
        prompts_S = self.rows["prompt"][self.rows_S[evicted_C[children.of_samples]]]
        return [(int(prompt), streams_S[prompts_S == prompt]) for prompt in np.unique(prompts_S)]

    def _become(self, children: Children, kept_C: NDArray[np.bool_]) -> None:
        """Make the kept children the rows, each with the samples that drew it."""
        slots_C = np.full(len(kept_C), -1)
        slots_C[kept_C] = place(children.parents[kept_C])
        child_R = np.zeros(int(kept_C.sum()), np.int64)
        # Slots and children are permutations of each other: this is the way back.
        child_R[slots_C[kept_C]] = np.flatnonzero(kept_C)
        self._move(children.parents[child_R])
        self._append(children.ahead[child_R], children.tokens[child_R], children.log_probs[child_R])
        rows_S = slots_C[children.of_samples]
        self.rows_S, self.streams_S = rows_S[rows_S >= 0], self.streams_S[rows_S >= 0]

    def _move(self, parents_R: Integers) -> None:
        self.cache.select(parents_R)
        self.rows = self.rows[parents_R]
        moved = np.flatnonzero(parents_R != np.arange(len(parents_R)))
        self.tokens_RL[moved] = self.tokens_RL[parents_R[moved]]

    def _append(self, ahead_R: Integers, tokens_R: Integers, log_probs_R: NDArray[np.float64]) -> None:
        """Add a token to every row, after those read ahead, which stand in their places already."""
        self.rows["depth"] += ahead_R
        self.rows["drafted"] += ahead_R
        self.rows["log_prob"] += log_probs_R
        self.tokens_RL[np.arange(len(tokens_R)), self.rows["depth"]] = tokens_R
        self.rows["next"] = tokens_R
        self.rows["depth"] += 1
