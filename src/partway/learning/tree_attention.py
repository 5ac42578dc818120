"""Attention on trees: a node attends to its ancestors, and hardly anything else is computed.

Nodes are in preorder, so a block of consecutive nodes can see only itself and the ancestors of its first
node. Attention is computed block by block on these keys: its cost grows with the depth of the trees, not with
the length of the row, and several trees in one row cost no more than each alone.

A `TreeMask` is handed to the model in place of an attention mask. Models pass it on unread to
`scaled_dot_product_attention`, where it takes over; nothing in the model is replaced or configured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, cat, split
from torch.nn.functional import pad, scaled_dot_product_attention

from partway.learning.passes import Refusal
from partway.learning.token_tree import Integers

BLOCK = 64  # nodes: fewer would be too many products, more would look at too much that is masked
WORTH_CUTTING = 1024  # keys that need not be gathered; the operations added in each layer take as long


class TreeMask(Tensor):
    """Stands for the ancestor mask of one row (1 x 1 x T x T, never made); see `tree_mask`."""

    # For each stretch of blocks: blocks x keys, what a block can see, as places in the row; and which of its
    # nodes do, blocks x 1 x BLOCK x keys.
    stretches: list[tuple[Tensor, Tensor]]

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        if func is not scaled_dot_product_attention:
            return super().__torch_function__(func, types, args, kwargs)  # type: ignore[no-untyped-call]
        if not hasattr(kwargs.get("attn_mask"), "stretches"):
            raise Refusal("changes the mask it is given")
        return _attend(*args, **kwargs)


def blocks(ends: Integers) -> list[NDArray[Any]]:
    """What each block of a row of trees sees (block, key), and which of its nodes do (block, 1, node, key).

    Given is for every node the place after its last descendant. There are such a pair of arrays for each
    stretch of blocks that see about as much: all are padded to the one that sees most.
    """
    seen = [
        # What begins before the block and ends in or after it is an ancestor of its first node.
        np.concatenate([np.nonzero(ends[:start] > start)[0], np.arange(start, min(start + BLOCK, len(ends)))])
        for start in range(0, len(ends), BLOCK)
    ]
    nodes = np.minimum(np.arange(len(seen) * BLOCK), len(ends) - 1).reshape(len(seen), BLOCK, 1)
    found: list[NDArray[Any]] = []
    for stretch in _stretches([*map(len, seen)]):
        some = seen[stretch]
        keys = np.zeros((len(some), max(map(len, some))), dtype=np.int64)
        until = np.zeros_like(keys)  # no node comes before 0, so padding is never seen
        for block, places in enumerate(some):
            keys[block, : len(places)] = places
            until[block, : len(places)] = ends[places]
        allowed = (nodes[stretch] >= keys[:, None]) & (nodes[stretch] < until[:, None])
        found += [keys, allowed[:, None]]
    return found


def _stretches(sizes: Sequence[int], first: int = 0) -> list[slice]:
    """Blocks that see about as many keys; of each stretch, all are padded to the one that sees most.

    >>> _stretches([300] * 5 + [90] * 15)
    [slice(0, 5, None), slice(5, 20, None)]
    """
    counts = np.arange(1, len(sizes))
    before = counts * np.maximum.accumulate(sizes)[:-1]
    after = counts[::-1] * np.maximum.accumulate(sizes[::-1])[-2::-1]
    whole = len(sizes) * max(sizes)
    if whole - (before + after).min(initial=whole) < max(WORTH_CUTTING, whole / 4):
        return [slice(first, first + len(sizes))]
    cut = int((before + after).argmin()) + 1
    return _stretches(sizes[:cut], first) + _stretches(sizes[cut:], first + cut)


def tree_mask(length: int, *seen: Tensor) -> TreeMask:
    """The mask of a row so long, given its `blocks`."""
    mask = seen[1].new_zeros(1).expand(1, 1, length, length).as_subclass(TreeMask)
    mask.stretches = list(zip(seen[::2], seen[1::2], strict=True))
    return mask


def _attend(query: Tensor, key: Tensor, value: Tensor, *, attn_mask: TreeMask, **settings: Any) -> Tensor:
    """Attention of one row (1 x heads x T x features), each block of queries on the keys it can see."""
    _, heads, length, features = query.shape
    counts = [len(keys) for keys, _ in attn_mask.stretches]
    padded = pad(query[0], (0, 0, 0, sum(counts) * BLOCK - length))
    queries = split(padded.reshape(heads, sum(counts), BLOCK, features).transpose(0, 1), counts)
    results = [
        scaled_dot_product_attention(
            some, _seen(key, keys), _seen(value, keys), attn_mask=allowed, **settings
        )
        for some, (keys, allowed) in zip(queries, attn_mask.stretches, strict=True)
    ]
    result = results[0] if len(results) == 1 else cat(results)
    return result.transpose(0, 1).flatten(1, 2)[None, :, :length]


def _seen(states: Tensor, keys: Tensor) -> Tensor:
    """Keys or values (1 x heads x T x features) of every block: blocks x heads x keys x features."""
    _, heads, _, features = states.shape
    return states[0].index_select(1, keys.flatten()).view(heads, *keys.shape, features).transpose(0, 1)
