"""The key/value cache of the sampling tree: a slot for each row, copied only if a row splits or moves.

Rows are right-aligned: the last cached token of every row stands at index `end - 1`. So one forward pass
appends to all of them, distances between a row's tokens are distances between indices (which GPT-Neo's local
attention counts), and what stands to the left of a row is masked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import Cache, DynamicCache, PreTrainedModel

from partway.learning.passes import Refusal, uploaded
from partway.learning.token_tree import Integers

ROOM = 64  # tokens that can be appended before the window is moved back


class RowCache(Cache):  # type: ignore[misc]  # transformers is untyped
    """One slot per row: the first `len(lengths)` slots are live, and `lengths` counts their cached tokens."""

    def __init__(self, slots: int) -> None:
        super().__init__(layers=[])
        self.lengths: Integers = np.zeros(0, np.int64)
        self.slots = slots
        self.start = self.end = self.width = 0  # what any row sees is at start .. end - 1 of width
        self.stores: list[list[Tensor]] = [[], []]  # keys and values per layer: slot, head, index, dimension

    @property
    def span(self) -> int:
        """How many indices the longest row takes."""
        return self.end - self.start

    def seen(self) -> list[NDArray[Any]]:
        """Make room for the next token of each row; what says which tokens a row sees, if not all."""
        self.make_room()
        if (self.lengths == self.lengths[0]).all():
            return []
        return [np.arange(self.start, self.end + 1) >= (self.end - self.lengths)[:, None]]

    def mask(self, model: PreTrainedModel, *seen: Tensor) -> Tensor | None:
        """What is `seen`, now where the model is, as the model wants it."""
        return seen[0] if seen else None

    def admit(
        self, prefilled: DynamicCache, lengths: Integers, starts: Integers | None = None, ahead: int = 0
    ) -> None:
        """Add rows whose first `lengths` tokens were just computed in `prefilled`.

        A row's first token stands at `starts` of the flattened batch; by default each row has its own in it.
        The `ahead` tokens that follow are taken too, and are counted by `step`.
        """
        first, last, longest = len(self.lengths), len(self.lengths) + len(lengths), int(lengths.max())
        self.make_room(count=max(ahead, 1), longest=longest)
        before = self.end - longest
        places = places_of(prefilled, lengths, starts, ahead)
        for number, layer in enumerate(prefilled.layers):
            for store, new in zip(self.stores, (layer.keys, layer.values), strict=True):
                slots = self._slots(store, number, new)
                slots[first:last, :, :before] = 0  # what is masked must still be finite
                slots[:first, :, before : self.start] = 0
                slots[first:last, :, before : self.end + ahead] = aligned(new, places)
        self._set_lengths(np.concatenate([self.lengths, lengths]))

    def select(self, parents: Integers) -> None:
        """Let slot i continue the row in slot `parents[i]`; what already stands in its slot is not touched.

        No slot is both written and read: see `place`.
        """
        self._set_lengths(self.lengths[parents])
        moved = np.flatnonzero(parents != np.arange(len(parents)))
        if len(moved) == 0:
            return
        if not self.stores[0]:
            raise Refusal("keeps nothing in the cache it is given")
        to, source = uploaded(self.stores[0][0].device, moved, parents[moved])
        window = slice(self.start, self.end)
        for slots in (*self.stores[0], *self.stores[1]):
            slots[to, :, window] = slots[source, :, window]

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: object, **kwargs: object
    ) -> tuple[Tensor, ...]:
        """Append tokens' keys and values to every row and return all of them (called by the model)."""
        rows, end = len(self.lengths), self.end + key_states.shape[2]
        views = []
        for store, new in zip(self.stores, (key_states, value_states), strict=True):
            slots = self._slots(store, layer_idx, new)[:rows]
            slots[:, :, self.end : end] = new
            views.append(slots[:, :, self.start : end])
        return tuple(views)

    def step(self, count: int = 1) -> None:
        """Count the tokens that a forward has just appended to every row."""
        self.lengths = self.lengths + count
        self.end += count

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """How many indices the model sees before the next token (called by the model)."""
        return self.end - self.start

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        """How long the mask is and where it starts (called by the model)."""
        return self.end - self.start + query_length, 0

    def make_room(self, count: int = 1, longest: int = 0) -> None:
        """Have `longest` indices before `end` and `count` after it; move the window if need be."""
        if len(self.lengths) == 0:
            self.start = self.end = longest
        if longest <= self.end <= self.width - count:
            return
        rows, length, window = len(self.lengths), self.end - self.start, slice(self.start, self.end)
        # Moving costs a copy of everything, so there is room for many tokens before the next time.
        self.end = max(length, longest)
        self.start, self.width = self.end - length, self.end + max(ROOM, count)
        for store in self.stores:
            for layer, old in enumerate(store):
                store[layer] = old.new_empty(self.slots, old.shape[1], self.width, old.shape[3])
                store[layer][:rows, :, self.start : self.end] = old[:rows, :, window]

    def _slots(self, store: list[Tensor], layer: int, like: Tensor) -> Tensor:
        if layer == len(store):
            store.append(like.new_empty(self.slots, like.shape[1], self.width, like.shape[3]))
        return store[layer]

    def _set_lengths(self, lengths: Integers) -> None:
        self.lengths = lengths
        self.start = self.end - int(lengths.max(initial=0))


def places_of(prefilled: DynamicCache, lengths: Integers, starts: Integers | None, ahead: int) -> Tensor:
    """Places in the flattened batch of each row's `lengths` tokens and those ahead, among any others."""
    if not prefilled.layers:  # prompts of a single token have none before it
        return torch.zeros((len(lengths), 0), dtype=torch.int64)
    batch, _, width, _ = prefilled.layers[0].keys.shape
    starts = np.arange(batch) * width if starts is None else starts
    longest = int(lengths.max())
    places_RW = (starts - longest + lengths)[:, None] + np.arange(longest + ahead)
    return uploaded(prefilled.layers[0].keys.device, places_RW.clip(0, batch * width - 1))[0]


def aligned(states: Tensor, places_RW: Tensor) -> Tensor:
    """Keys or values of tokens (batch, head, index, dimension) at these places, row by row."""
    flat = states.transpose(0, 1).flatten(1, 2)
    found = flat.index_select(1, places_RW.flatten())
    return found.view(len(flat), *places_RW.shape, states.shape[3]).transpose(0, 1)


def place(parents_C: Integers) -> Integers:
    """Slots for children, sorted by parent: 0 .. len-1, with as few moves as possible.

    The first child of a parent stays in the parent's slot unless that is dropped; the others fill the gaps.

    >>> place(np.array([0, 2, 2, 2])), place(np.array([1, 3]))
    (array([0, 2, 1, 3]), array([1, 0]))
    """
    count = len(parents_C)
    stays_C = np.diff(parents_C, prepend=-1) > 0
    # There are only `count` slots: who stands beyond them moves, though it is a first child.
    stays_C &= parents_C < count
    slots_C = np.where(stays_C, parents_C, -1)
    is_free = np.ones(count, bool)
    is_free[slots_C[stays_C]] = False
    slots_C[~stays_C] = np.flatnonzero(is_free)
    return slots_C
