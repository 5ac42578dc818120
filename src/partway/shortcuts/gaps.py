"""Rows with gaps: of the tokens that a forward appended to a row, only the first are kept.

What is not kept stays in the cache, masked. Then indices are no longer distances, so such rows are for models
that go by the positions they are given; `close_gaps` aligns them again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from partway.learning.passes import attention_mask, uploaded
from partway.learning.token_tree import Integers
from partway.sampling.cache import RowCache


class GappedRowCache(RowCache):
    """A `RowCache` that takes several tokens of each row at once, and drops some of them again."""

    def __init__(self, slots: int) -> None:
        super().__init__(slots)
        self.appended = 0  # tokens of each row that came with the last forward
        self.gaps: NDArray[np.bool_] | None = None  # row, index: what a row does not see though it once began

    def seen(self, count: int = 1) -> list[NDArray[Any]]:
        """Make room for the next `count` tokens of each row; what says who sees whom, if it must be said."""
        if count == 1 and self.gaps is None:
            return super().seen()
        self.make_room(count)
        return [self.seen_by_several(count)]

    def mask(self, model: PreTrainedModel, *seen: Tensor) -> Tensor | None:
        """What is `seen`, now where the model is, as the model wants it."""
        if not seen or seen[0].dim() == 2:
            return super().mask(model, *seen)
        return attention_mask(model, seen[0])

    def seen_by_several(self, count: int) -> NDArray[np.bool_]:
        """Which indices the next `count` tokens of each row see: row, 1, token, index."""
        seen_RW = np.concatenate([self._seen(), np.zeros((len(self.lengths), count), bool)], 1)
        mask_RQW = np.repeat(seen_RW[:, None], count, 1)
        # The new tokens stand side by side at the end, and each sees those before it.
        mask_RQW[:, :, -count:] = np.tri(count, dtype=bool)
        return mask_RQW[:, None]

    def admit(
        self, prefilled: DynamicCache, lengths: Integers, starts: Integers | None = None, ahead: int = 0
    ) -> None:
        """Add rows; all are aligned then."""
        self.close_gaps()
        super().admit(prefilled, lengths, starts, ahead)

    def select(self, parents: Integers) -> None:
        """Let slot i continue the row in slot `parents[i]`."""
        if self.gaps is not None:
            self.gaps = self.gaps[parents]
        super().select(parents)

    def step(self, count: int = 1) -> None:
        """Count the tokens that a forward has just appended to every row."""
        super().step(count)
        self.appended = count

    def keep(self, counts: Integers) -> None:
        """Of the tokens that the last forward appended keep the first `counts` of each row."""
        if (counts == self.appended).all():
            return
        if self.gaps is None:
            self.gaps = np.zeros((len(counts), self.width), bool)
        self.gaps[:, self.end - self.appended : self.end] = np.arange(self.appended) >= counts[:, None]
        self._set_lengths(self.lengths - self.appended + counts)

    def close_gaps(self) -> None:
        """Align all rows to the right again."""
        if self.gaps is None:
            return
        indices_RL = np.zeros((len(self.lengths), int(self.lengths.max(initial=0))), np.int64)
        for row, (seen, length) in enumerate(zip(self._seen(), self.lengths, strict=True)):
            # What is padded repeats the first index: masked, but finite.
            indices_RL[row] = self.start
            indices_RL[row, len(indices_RL[row]) - length :] = self.start + np.flatnonzero(seen)
        rows_R1, indices = uploaded(self.stores[0][0].device, np.arange(len(indices_RL))[:, None], indices_RL)
        for slots in (*self.stores[0], *self.stores[1]):
            slots[: len(indices), :, : indices.shape[1]] = slots[rows_R1, :, indices].transpose(1, 2)
        self.gaps = None
        self.end = indices_RL.shape[1]
        self._set_lengths(self.lengths)

    def make_room(self, count: int = 1, longest: int = 0) -> None:
        """Have `longest` indices before `end` and `count` after it; gaps move with the window."""
        before = self.start, self.end, self.width
        super().make_room(count, longest)
        if self.gaps is not None and before != (self.start, self.end, self.width):
            moved = np.zeros((len(self.lengths), self.width), bool)
            moved[:, self.start : self.end] = self.gaps[:, before[0] : before[1]]
            self.gaps = moved

    def _seen(self) -> NDArray[np.bool_]:
        """What each row sees of the window."""
        gaps_RW = np.zeros((len(self.lengths), self.end - self.start), bool)
        if self.gaps is not None:
            gaps_RW = self.gaps[:, self.start : self.end]
        later_RW = np.cumsum(~gaps_RW[:, ::-1], 1)[:, ::-1]  # tokens of the row from here on, gaps apart
        return ~gaps_RW & (later_RW <= self.lengths[:, None])

    def _set_lengths(self, lengths: Integers) -> None:
        super()._set_lengths(lengths)
        if self.gaps is not None and len(lengths):
            # A row with gaps takes more indices than it has tokens: count from the end until all are found.
            before_RW = np.cumsum(~self.gaps[:, : self.end][:, ::-1], 1)
            spans = (before_RW < lengths[:, None]).sum(1) + 1
            self.start = self.end - int(spans.max(initial=0))
