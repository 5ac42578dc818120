"""Keeps the keys and values of a prompt once for all rows that continue it; a row keeps its own tokens only.

A row attends to two stretches: its prompt, together with all rows of the same prompt in one product of
matrices, and its own tokens. A softmax over both is the two softmaxes, weighted by their totals. So rows
cost no prompt: more of them fit into memory, a split copies a few tokens, and where several heads share keys
and values these are not repeated for each.

As with a `TreeMask`, models pass a `PromptMask` on unread to `scaled_dot_product_attention`, where it takes
over. Local attention is not known here: such models keep whole rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers import Cache, DynamicCache, PreTrainedModel

from partway.learning.token_tree import Integers
from partway.sampling.cache import aligned, places_of
from partway.sampling.local_engine import TreeSampler, token_bytes
from partway.sampling.samplers import windows
from partway.shortcuts.gaps import GappedRowCache

# Bytes of a token's keys and values; with fewer, launching more operations costs more. On a GPU it always
# does: there whole rows need as many operations as `generate`, and these half as many again.
WORTH_SHARING = 16_384


def sampler(model: PreTrainedModel) -> TreeSampler | None:
    """The sampling tree with shared prompts, for models that gain from it."""
    # Attention must be ours to compute and see everything.
    is_plain = model.config._attn_implementation == "sdpa" and not windows(model)
    is_worth_it = model.device.type == "cpu" and token_bytes(model) >= WORTH_SHARING
    return TreeSampler(SharedPromptCache) if is_plain and is_worth_it else None


class SharedPromptCache(Cache):  # type: ignore[misc]  # transformers is untyped
    """What `RowCache` is to whole rows, for rows that share prompts."""

    def __init__(self, slots: int) -> None:
        super().__init__(layers=[])
        self.drawn = GappedRowCache(slots)
        self.prompt_lengths: Integers = np.zeros(0, np.int64)
        self.prompts_R: Integers = np.zeros(0, np.int64)  # of each row, which prompt it continues
        # Keys and values per layer: prompt, head, index, dimension.
        self.stores: list[list[Tensor]] = [[], []]
        self.latest: tuple[Tensor, ...] = ()  # keys and values of prompts and rows in the layer at work

    @property
    def lengths(self) -> Integers:
        """How many tokens of each row are cached, its prompt included."""
        return self.prompt_lengths[self.prompts_R] + self.drawn.lengths

    @property
    def longest_prompt(self) -> int:
        """How many indices prompts take; at least one, if it is masked."""
        return int(self.prompt_lengths.max(initial=1))

    @property
    def span(self) -> int:
        """How many indices the longest row takes."""
        return self.drawn.span + self.longest_prompt

    def admit(
        self, prefilled: DynamicCache, lengths: Integers, starts: Integers | None = None, ahead: int = 0
    ) -> None:
        """Add a row for each prompt whose first `lengths` tokens were just computed in `prefilled`.

        As in `RowCache.admit`; prompts that no row continues any more make room.
        """
        live, self.prompts_R = np.unique(self.prompts_R, return_inverse=True)
        self.prompt_lengths = self.prompt_lengths[live]
        if starts is None:
            starts = np.arange(len(lengths)) * int(lengths.max())
        places, kept = places_of(prefilled, lengths, starts, 0), torch.from_numpy(live)
        for number, states in enumerate(self._states(prefilled)):
            places, kept = places.to(states[0].device), kept.to(states[0].device)  # once, for the first layer
            for store, new in zip(self.stores, states, strict=True):
                old = self._kept(store[number], kept) if number < len(store) else _empty(new, len(live))
                store[number : number + 1] = [_stacked(old, aligned(new, places))]
        self.drawn.admit(prefilled, np.zeros_like(lengths), starts + lengths, ahead)
        self.prompts_R = np.concatenate([self.prompts_R, len(live) + np.arange(len(lengths))])
        self.prompt_lengths = np.concatenate([self.prompt_lengths, lengths])

    def select(self, parents: Integers) -> None:
        """Let slot i continue the row in slot `parents[i]`."""
        self.prompts_R = self.prompts_R[parents]
        self.drawn.select(parents)

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: object, **kwargs: object
    ) -> tuple[Tensor, ...]:
        """Append new keys and values to every row, where a `PromptMask` finds them (called by the model)."""
        of_rows = self.drawn.update(key_states, value_states, layer_idx)
        prompts = len(self.prompt_lengths)
        of_prompts = (
            store[layer_idx] if store else _empty(new, prompts)
            for store, new in zip(self.stores, (key_states, value_states), strict=True)
        )
        self.latest = (*of_prompts, *of_rows)
        return key_states, value_states

    def step(self, count: int = 1) -> None:
        """Count the tokens that a forward has just appended to every row."""
        self.drawn.step(count)

    def keep(self, counts: Integers) -> None:
        """Of the tokens that the last forward appended keep the first `counts` of each row."""
        self.drawn.keep(counts)

    def close_gaps(self) -> None:
        """Forget what was not kept."""
        self.drawn.close_gaps()

    def seen(self, count: int = 1) -> list[NDArray[Any]]:
        """What says who sees whom when the next `count` tokens of each row are read."""
        self.drawn.make_room(count)
        starts_P = self.longest_prompt - self.prompt_lengths
        return [self.drawn.seen_by_several(count), starts_P, *_by_prompt(self.prompts_R, len(starts_P))]

    def mask(self, model: PreTrainedModel, *seen: Tensor) -> PromptMask:
        """The mask of the next forward, which appends to every row."""
        return PromptMask.of(self, *seen)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """How many indices the model sees before the next token (called by the model)."""
        return self.span

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        """How long the mask is and where it starts (called by the model)."""
        return self.span + query_length, 0

    def _states(self, prefilled: DynamicCache) -> Sequence[tuple[Tensor, Tensor]]:
        """Keys and values of every layer; prompts of a single token have none before it."""
        if prefilled.layers:
            return [(layer.keys, layer.values) for layer in prefilled.layers]
        return [(keys[:, :, :0], values[:, :, :0]) for keys, values in zip(*self.stores, strict=True)]

    def _kept(self, prompts: Tensor, live: Tensor) -> Tensor:
        """Those that rows still continue, as wide as the longest of them."""
        padding = prompts.shape[2] - self.longest_prompt
        return prompts[live, :, padding:]


class PromptMask(Tensor):
    """Stands for the mask of rows that share prompts; it knows where their keys and values are."""

    cache: SharedPromptCache
    drawn: Tensor | None  # row, 1, token, index: what the rows do not see of their own tokens, if anything
    prompts: Tensor | None  # prompt, 1, 1, index: what is padding before a prompt, if anything
    rows: Tensor  # prompt, place: rows of each prompt, padded
    places: Tensor  # of each row, where it stands in `rows`, flattened

    @classmethod
    def of(
        cls, cache: SharedPromptCache, drawn: Tensor, starts_P: Tensor, rows: Tensor, places: Tensor
    ) -> PromptMask:
        """The mask of the next forward; the prompt of each row begins at one of `starts_P`."""
        # The strides of one number: nothing of this size is ever made.
        mask = drawn.new_zeros(1).expand(drawn.shape).as_subclass(cls)
        padding = torch.arange(cache.longest_prompt, device=drawn.device) < starts_P[:, None, None, None]
        mask.drawn, mask.prompts = (one if one.any() else None for one in (~drawn, padding))
        mask.cache, mask.rows, mask.places = cache, rows, places
        return mask

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        if func is not scaled_dot_product_attention:
            return super().__torch_function__(func, types, args, kwargs)  # type: ignore[no-untyped-call]
        return _attend(*args, **kwargs)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    attn_mask: PromptMask,
    scale: float | None = None,
    **settings: Any,
) -> Tensor:
    """Attention of all rows (row, head, token, feature); key and value are those of the new tokens only."""
    prompt_keys, prompt_values, keys, values = attn_mask.cache.latest
    rows, heads, count, features = query.shape
    scaled = query * (features**-0.5 if scale is None else scale)
    # Heads that share keys and values are as many queries to them: row, shared head, query, feature.
    queries = scaled.reshape(rows, keys.shape[1], -1, features)
    hidden = attn_mask.drawn
    if hidden is not None and count > 1:
        hidden = hidden.repeat(1, 1, queries.shape[2] // count, 1)
    found = _stretch(_beside(queries[attn_mask.rows]), prompt_keys, prompt_values, attn_mask.prompts)
    own, totals = _stretch(queries, keys, values, hidden)
    shape = *attn_mask.rows.shape, queries.shape[2]
    of_prompts, prompt_totals = (_of_rows(one, shape)[attn_mask.places] for one in found)
    # e^a / (e^a + e^b) is the sigmoid of a - b: of all the weight, the share that falls on the prompt.
    share = prompt_totals.sub_(totals).sigmoid_().to(own.dtype)
    return of_prompts.sub_(own).mul_(share).add_(own).reshape(rows, heads, count, -1)


def _stretch(queries: Tensor, keys: Tensor, values: Tensor, hidden: Tensor | None) -> tuple[Tensor, Tensor]:
    """Attention to one stretch, and the logarithm of its total weight (its last dimension is 1).

    In place where that can be: between large products, making an array costs more than its numbers.
    """
    scores = queries @ keys.transpose(2, 3)
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if hidden is not None:
        # Not minus infinity: a prompt of no tokens is then averaged over nothing real, with no weight at all.
        scores.masked_fill_(hidden, torch.finfo(scores.dtype).min)
    highest = scores.amax(-1, keepdim=True)
    weights = scores.sub_(highest).exp_()
    totals = weights.sum(-1, keepdim=True)
    return (weights.to(values.dtype) @ values).div_(totals), totals.log_().add_(highest)


def _beside(queries: Tensor) -> Tensor:
    """Prompt, place, head, query, feature: all queries to one head of a prompt side by side."""
    return queries.transpose(1, 2).flatten(2, 3)


def _of_rows(found: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """Undo `_beside`: place, head, query, feature for all places."""
    prompts, places, count = shape
    apart = found.reshape(prompts, found.shape[1], places, count, found.shape[3])
    return apart.transpose(1, 2).flatten(0, 1)


def _by_prompt(prompts_R: Integers, prompts: int) -> tuple[Integers, Integers]:
    """The rows of each prompt, padded with row 0, and of each row its place in that, flattened.

    >>> _by_prompt(np.array([1, 0, 1]), 2)
    (array([[1, 0],
           [0, 2]]), array([2, 0, 3]))
    """
    counts = np.bincount(prompts_R, minlength=prompts)
    order = np.argsort(prompts_R, kind="stable")
    nth = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = np.zeros((prompts, int(counts.max(initial=0))), np.int64)
    rows[prompts_R[order], nth] = order
    places = np.zeros(len(order), np.int64)
    places[order] = prompts_R[order] * rows.shape[1] + nth
    return rows, places


def _empty(like: Tensor, prompts: int) -> Tensor:
    """Prompts without tokens."""
    return like.new_zeros(prompts, like.shape[1], 1, like.shape[3])


def _stacked(old: Tensor, new: Tensor) -> Tensor:
    """Prompts of two widths together, aligned on the right."""
    width = max(old.shape[2], new.shape[2], 1)
    return torch.cat([pad(part, (0, 0, width - part.shape[2], 0)) for part in (old, new)])
