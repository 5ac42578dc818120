"""Where to cut a row of blocks of tree attention: one long tree is not to pad the keys of all others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

WORTH_CUTTING = 1024  # keys that need not be gathered; the operations added in each layer take as long


def stretches(sizes: Sequence[int], first: int = 0) -> list[slice]:
    """Blocks that see about as many keys; of each stretch, all are padded to the one that sees most.

    >>> stretches([300] * 5 + [90] * 15)
    [slice(0, 5, None), slice(5, 20, None)]
    """
    counts = np.arange(1, len(sizes))
    before = counts * np.maximum.accumulate(sizes)[:-1]
    after = counts[::-1] * np.maximum.accumulate(sizes[::-1])[-2::-1]
    whole = len(sizes) * max(sizes)
    if whole - (before + after).min(initial=whole) < max(WORTH_CUTTING, whole / 4):
        return [slice(first, first + len(sizes))]
    cut = int((before + after).argmin()) + 1
    return stretches(sizes[:cut], first) + stretches(sizes[cut:], first + cut)
