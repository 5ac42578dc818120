"""The frontier of a sampling tree: its live rows, the samples they hold, and one step of all of them.

Array names end in their axes: R rows, S samples, C children, V vocabulary, L completion length, Q the tokens
that a forward reads of each row, which are the last one drawn and those guessed to follow it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from partway.learning.passes import logits_at, uploaded
from partway.learning.tree_attention import blocks, tree_mask
from partway.sampling.cache import place
from partway.sampling.drawing import draw, fetched, to_draw_from, uniforms
from partway.sampling.sampling_task import TOKEN, SamplingTask

PREFILL_TOKENS = 8192  # prompts are read in batches of at most this many tokens, padding included
WORTH_READING_APART = 32  # tokens with which all of them begin

Integers = NDArray[np.int64]
Streams = NDArray[np.uint64]

ROW = np.dtype(
    [
        ("prompt", np.int64),
        ("order", np.int64),  # the row's prompt was the order-th to be admitted
        ("limit", np.int64),  # the longest completion
        ("depth", np.int64),  # tokens drawn so far
        ("next", np.int64),  # the last token, which the model has not read yet
        ("log_prob", np.float64),  # of the tokens drawn so far, at temperature 1 and unfiltered
        ("guessed", np.int64),  # tokens guessed to follow; they stand after those drawn
        ("drafted", np.int64),  # tokens drawn so far that had been guessed
    ]
)

# What has ended of one prompt: the tokens drawn, end-of-text too, and whether they are finished (not cut off
# by length), to the number of samples that drew them, their log-probability and how many had been guessed.
Ended = dict[tuple[tuple[int, ...], bool], tuple[int, float, int]]


@dataclass(frozen=True, slots=True)
class Children:
    """The distinct continuations of all rows, sorted by row: its first `right` guesses, then one token.

    `of_samples` says which child each sample drew; the other arrays have an entry per child.
    """

    parents: Integers
    right: Integers
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
        self.tokens_RL = np.zeros((task.budget, task.settings.max_completion_length), TOKEN)
        self.rows_S: Integers = np.zeros(0, np.int64)
        self.streams_S: Streams = np.zeros(0, np.uint64)
        self.admitted = 0
        self.ended: list[Ended] = [{} for _ in task.prompts]
        self.distinct = self.drawn = 0  # completions that ended so far, and the samples that drew them
        self.tokens_computed = 0

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
        """Extend every sample by the tokens that were guessed right and one more.

        Returns the prompts and samples that must start again because their rows would exceed the budget.
        """
        if self.task.guesser is not None:
            self.task.guesser.write(self.rows, self.tokens_RL, self._longest_read(), ragged=self.unread)
        children = self._draw_children(*(self._read_prompts() if self.unread else self._forward()))
        self.unread = False
        depths_C = self.rows["depth"][children.parents] + children.right
        finished_C = self._is_finished(children)
        ended_C = finished_C | (depths_C + 1 >= self.rows["limit"][children.parents])
        self._end(children, ended_C, finished_C)
        kept_C = self._within_budget(children, ~ended_C)
        evicted_C = ~(ended_C | kept_C)
        evicted = self._evicted(children, evicted_C) if evicted_C.any() else []
        self._become(children, kept_C)
        return evicted

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
        """Whether one row can hold all prompts that wait: no padding, and guesses are read with them."""
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
        """As `_forward`, when nothing is read yet: all prompts and their guesses one after the other."""
        prompts = [self.task.prompts[number] for number in self.rows["prompt"]]
        lengths_R = np.array([len(prompt) - 1 for prompt in prompts])
        ahead_RQ, guessed_R = self._ahead(), self.rows["guessed"]
        sizes_R = lengths_R + 1 + guessed_R
        starts_R = np.cumsum(sizes_R) - sizes_R
        positions = np.concatenate([np.arange(size) for size in sizes_R])
        guesses = (tokens[:count] for tokens, count in zip(self.tokens_RL, guessed_R, strict=False))
        texts = [part for prompt, guess in zip(prompts, guesses, strict=True) for part in (prompt, guess)]
        cache, last_RQ = DynamicCache(), (starts_R + lengths_R)[:, None] + ahead_RQ
        last, ids, places, read, bits, *seen = uploaded(
            self.device,
            last_RQ.flatten(),
            np.concatenate(texts, dtype=np.int64)[None],
            positions[None],
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

    def _longest_read(self) -> int:
        """How many tokens of the longest row the model has read, or will have, its last one apart."""
        if self.unread:
            return max(len(self.task.prompts[number]) for number in self.rows["prompt"]) - 1
        return int(self.cache.lengths.max())

    def _ahead(self) -> Integers:
        """What a forward reads of each row, counted from its last token; the last guess again as padding."""
        count = 1 + int(self.rows["guessed"].max())
        ahead_RQ: Integers = np.minimum(np.arange(count), self.rows["guessed"][:, None])
        return ahead_RQ

    def _forward(self) -> tuple[Tensor, Tensor, Tensor]:
        """The logits after the last token and the guesses of every row, row by row; and the `_numbers`."""
        ahead_RQ = self._ahead()
        count = ahead_RQ.shape[1]
        ids_RQ = self._tokens_ahead(ahead_RQ - 1).astype(np.int64)
        ids_RQ[:, 0] = self.rows["next"]
        if self.task.guesser is not None and self.cache.span + count > self.task.guesser.longest:
            self.cache.close_gaps()
        seen = self.cache.seen(count)
        positions_RQ = self.cache.lengths[:, None] + ahead_RQ
        ids, positions, read, bits, *seen = uploaded(
            self.device, ids_RQ, positions_RQ, *self._numbers(count), *seen
        )
        mask = self.cache.mask(self.model, *seen)
        logits_RQV = self._run(
            ids, count, past_key_values=self.cache, position_ids=positions, attention_mask=mask
        )
        self.cache.step(count)
        self.tokens_computed += int((1 + self.rows["guessed"]).sum())
        return to_draw_from(logits_RQV.flatten(0, 1)), read, bits

    def _tokens_ahead(self, ahead_RQ: Integers) -> NDArray[np.int32]:
        """Tokens of every row, counted from the first that is not drawn yet; past its guesses, any."""
        places_RQ = np.minimum(self.rows["depth"][:, None] + ahead_RQ, self.tokens_RL.shape[1] - 1)
        return self.tokens_RL[np.arange(len(self.rows))[:, None], places_RQ]

    def _numbers(self, count: int) -> tuple[Integers, Integers]:
        """Where each sample draws in the logits of `count` tokens a row, and its random numbers, as bits."""
        read_SQ = self.rows_S[:, None] * count + np.arange(count)
        depths_SQ = self.rows["depth"][self.rows_S][:, None] + np.arange(count)
        return read_SQ.flatten(), uniforms(self.streams_S[:, None], depths_SQ).view(np.int64).flatten()

    def _run(self, ids: Tensor, count: int, **inputs: object) -> Tensor:
        """The logits after the last `count` tokens of each row."""
        logits: Tensor = self.model(input_ids=ids, use_cache=True, logits_to_keep=count, **inputs).logits
        return logits[:, -count:]

    def _draw_children(self, logits: Tensor, read: Tensor, bits: Tensor) -> Children:
        """Let every sample draw after each token of its row, and go as far as it draws what was guessed."""
        vocabulary, count = logits.shape[-1], len(logits) // len(self.rows)
        # Bits until now, since Apple's GPUs have no float64: there logits came to the CPU.
        read, numbers = read.to(logits.device), bits.to(logits.device).view(torch.float64)
        drawn, log_probs = fetched(logits, read, draw(logits, self.task.settings, read, numbers))
        drawn_SQ, log_probs_SQ = drawn.reshape(-1, count), log_probs.reshape(-1, count)
        right_S = self._right_guesses(drawn_SQ)
        last = np.arange(len(right_S)), right_S
        # A child is a place in the flattened logits: after which read token, and which token is drawn there.
        keys_S = (self.rows_S * count + right_S) * vocabulary + drawn_SQ[last]
        keys_C, first_C, of_S = np.unique(keys_S, return_index=True, return_inverse=True)
        read_C, tokens_C = np.divmod(keys_C, vocabulary)
        parents_C, right_C = np.divmod(read_C, count)
        log_probs_C = log_probs_SQ.cumsum(1)[first_C, right_C]  # of right guesses and what follows them
        return Children(parents_C, right_C, tokens_C, log_probs_C, of_S)

    def _right_guesses(self, drawn_SQ: Integers) -> Integers:
        """How many of its row's guesses each sample has drawn."""
        places_Q = np.arange(drawn_SQ.shape[1] - 1)
        agrees_SQ = drawn_SQ[:, :-1] == self._tokens_ahead(places_Q[None])[self.rows_S]
        agrees_SQ &= places_Q < self.rows["guessed"][self.rows_S][:, None]
        right_S: Integers = agrees_SQ.cumprod(1).sum(1)
        if self.task.guesser is not None:
            farthest_R = np.zeros(len(self.rows), np.int64)
            np.maximum.at(farthest_R, self.rows_S, right_S)
            self.task.guesser.right += int(farthest_R.sum())
        return right_S

    def _is_finished(self, children: Children) -> NDArray[np.bool_]:
        finished_C = self.task.is_end[children.tokens]
        if self.task.watch is not None:
            for child in np.flatnonzero(self.task.watch.has_newline[children.tokens] & ~finished_C):
                finished_C[child] = self.task.watch.closes(self._path(children, child))
        return finished_C

    def _path(self, children: Children, child: np.intp) -> list[int]:
        parent = children.parents[child]
        depth = self.rows["depth"][parent] + children.right[child]
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
            ended[key] = count, log_prob, int(parent["drafted"] + children.right[child])
            self.distinct += 1
            self.drawn += int(counts_C[child])

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
        self._append(children.right[child_R], children.tokens[child_R], children.log_probs[child_R])
        rows_S = slots_C[children.of_samples]
        self.rows_S, self.streams_S = rows_S[rows_S >= 0], self.streams_S[rows_S >= 0]

    def _move(self, parents_R: Integers) -> None:
        self.cache.select(parents_R)
        self.rows = self.rows[parents_R]
        moved = np.flatnonzero(parents_R != np.arange(len(parents_R)))
        self.tokens_RL[moved] = self.tokens_RL[parents_R[moved]]

    def _append(self, right_R: Integers, tokens_R: Integers, log_probs_R: NDArray[np.float64]) -> None:
        """Add the right guesses, which stand in their places already, and a token to every row."""
        self.cache.keep(1 + right_R)
        self.rows["depth"] += right_R
        self.rows["drafted"] += right_R
        self.rows["log_prob"] += log_probs_R
        self.tokens_RL[np.arange(len(tokens_R)), self.rows["depth"]] = tokens_R
        self.rows["next"] = tokens_R
        self.rows["depth"] += 1
