"""Keys and values of the sampling tree's rows, in slots that are copied only when a row splits or moves.

Rows are right-aligned: whatever its length, a row's last cached token stands at index `end - 1`. So one
forward appends to all of them at once, distances between a row's tokens are distances between indices
(GPT-Neo's local attention counts those), and what lies to the left of a row is masked.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import Cache, DynamicCache

ROOM = 64  # tokens that can be appended before the window is moved back


class RowCache(Cache):  # type: ignore[misc]  # transformers is untyped
    """One slot per row: the first `len(lengths)` slots are live, and `lengths` counts their cached tokens."""

    def __init__(self, slots: int) -> None:
        super().__init__(layers=[])
        self.lengths: NDArray[np.int64] = np.zeros(0, np.int64)
        self.slots = slots
        self.start = self.end = self.width = 0  # the longest row is cached at start .. end - 1 of width
        self.stores: list[list[Tensor]] = [[], []]  # keys and values per layer: slot, head, index, dimension

    def mask(self) -> Tensor | None:
        """Which tokens each row sees, its next one included; None if all rows are equally long."""
        if (self.lengths == self.lengths[0]).all():
            return None
        starts_R1 = torch.from_numpy(self.end - self.lengths)[:, None]
        return torch.arange(self.start, self.end + 1) >= starts_R1

    def admit(self, prefilled: DynamicCache, lengths: NDArray[np.int64]) -> None:
        """Add rows whose first `lengths` tokens were just computed, right-padded, in `prefilled`."""
        first, last, longest = len(self.lengths), len(self.lengths) + len(lengths), int(lengths.max())
        self._make_room(longest)
        for number, layer in enumerate(prefilled.layers):
            for store, new in zip(self.stores, (layer.keys, layer.values), strict=True):
                slots = self._slots(store, number, new)
                slots[first:last, :, : self.end] = 0  # what is masked must still be finite
                slots[:first, :, self.end - longest : self.start] = 0
                for row, length in enumerate(lengths.tolist()):
                    slots[first + row, :, self.end - length : self.end] = new[row, :, :length]
        self._set_lengths(np.concatenate([self.lengths, lengths]))

    def select(self, parents: NDArray[np.int64]) -> None:
        """Let slot i continue the row in slot `parents[i]`; what already stands in its slot is not touched.

        No slot is both written and read: see `place`.
        """
        self._set_lengths(self.lengths[parents])
        moved = np.flatnonzero(parents != np.arange(len(parents)))
        if len(moved) == 0:
            return
        to, source, window = (
            torch.from_numpy(moved),
            torch.from_numpy(parents[moved]),
            slice(self.start, self.end),
        )
        for slots in (*self.stores[0], *self.stores[1]):
            slots[to.to(slots.device), :, window] = slots[source.to(slots.device), :, window]

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: object, **kwargs: object
    ) -> tuple[Tensor, ...]:
        """Append one token's keys and values to every row and return all of them (called by the model)."""
        rows, window = len(self.lengths), slice(self.start, self.end + 1)
        views = []
        for store, new in zip(self.stores, (key_states, value_states), strict=True):
            slots = self._slots(store, layer_idx, new)[:rows]
            slots[:, :, self.end] = new[:, :, 0]
            views.append(slots[:, :, window])
        return tuple(views)

    def step(self) -> None:
        """Count the token that a forward has just appended to every row."""
        self.lengths = self.lengths + 1
        self.end += 1
        if self.end == self.width:
            self._make_room()

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """How many indices the model sees before the next token (called by the model)."""
        return self.end - self.start

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        """How long the mask is and where it starts (called by the model)."""
        return self.end - self.start + query_length, 0

    def _slots(self, store: list[Tensor], layer: int, like: Tensor) -> Tensor:
        if layer == len(store):
            store.append(like.new_empty(self.slots, like.shape[1], self.width, like.shape[3]))
        return store[layer]

    def _set_lengths(self, lengths: NDArray[np.int64]) -> None:
        self.lengths = lengths
        self.start = self.end - int(lengths.max(initial=0))

    def _make_room(self, longest: int = 0) -> None:
        """Have `longest` indices before `end` and one behind it; move the window if need be."""
        if len(self.lengths) == 0:
            self.start = self.end = longest
        if longest <= self.end < self.width:
            return
        rows, length, window = len(self.lengths), self.end - self.start, slice(self.start, self.end)
        self.end = max(length, longest)
        self.start, self.width = self.end - length, self.end + ROOM
        for store in self.stores:
            for layer, old in enumerate(store):
                store[layer] = old.new_empty(self.slots, old.shape[1], self.width, old.shape[3])
                store[layer][:rows, :, self.end - length : self.end] = old[:rows, :, window]


def place(parents_C: NDArray[np.int64]) -> NDArray[np.int64]:
    """Slots for children, sorted by parent: 0 .. len-1, with as few moves as possible.

    The first child of a parent stays in the parent's slot unless that is dropped; the others fill the gaps.

    >>> place(np.array([0, 2, 2, 2])), place(np.array([1, 3]))
    (array([0, 2, 1, 3]), array([1, 0]))
    """
    count = len(parents_C)
    stays_C = np.diff(parents_C, prepend=-1) > 0
    stays_C &= parents_C < count
    slots_C = np.where(stays_C, parents_C, -1)
    is_free = np.ones(count, bool)
    is_free[slots_C[stays_C]] = False
    slots_C[~stays_C] = np.flatnonzero(is_free)
    return slots_C
