"""Attention on trees: a node attends to its ancestors, and little else is computed.

Nodes are in preorder, so all that a block of consecutive nodes can see is the block itself and the ancestors
of its first node. Attention is computed block by block on just those keys: its cost grows with the depth of
the trees, not with the length of the row, and several trees in one row cost no more than each alone.

A `TreeMask` is handed to the model in place of an attention mask. Models pass it on unread to
`scaled_dot_product_attention`, where it takes over; nothing in the model is replaced or configured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from partway.learning.token_tree import Integers

BLOCK = 64  # nodes: fewer would be too many products, more would look at too much that is masked


class TreeMask(Tensor):
    """Stands for the ancestor mask of one row (1 x 1 x T x T, never made); see `tree_mask`."""

    keys: Tensor  # blocks x keys: what each block can see, as places in the row
    allowed: Tensor  # blocks x 1 x BLOCK x keys

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        if func is not scaled_dot_product_attention:
            return super().__torch_function__(func, types, args, kwargs)  # type: ignore[no-untyped-call]
        return _attend(*args, **kwargs)


def blocks(ends: Integers) -> tuple[Integers, NDArray[np.bool_]]:
    """What each block of a row of trees sees (block, key), and which of its nodes do (block, 1, node, key).

    Given is for every node the place after its last descendant.
    """
    starts = range(0, len(ends), BLOCK)
    seen = [
        # What begins before the block and ends in or after it is an ancestor of its first node.
        np.concatenate([np.nonzero(ends[:start] > start)[0], np.arange(start, min(start + BLOCK, len(ends)))])
        for start in starts
    ]
    keys = np.zeros((len(seen), max(map(len, seen))), dtype=np.int64)
    until = np.zeros_like(keys)  # no node comes before 0, so padding is never seen
    for block, places in enumerate(seen):
        keys[block, : len(places)] = places
        until[block, : len(places)] = ends[places]
    nodes = np.minimum(np.arange(len(seen) * BLOCK), len(ends) - 1).reshape(len(seen), BLOCK, 1)
    allowed = (nodes >= keys[:, None]) & (nodes < until[:, None])
    return keys, allowed[:, None]


def tree_mask(length: int, keys: Tensor, allowed: Tensor) -> TreeMask:
    """The mask of a row so long, given its `blocks`."""
    mask = allowed.new_zeros(1).expand(1, 1, length, length).as_subclass(TreeMask)
    mask.keys, mask.allowed = keys, allowed
    return mask


def _attend(query: Tensor, key: Tensor, value: Tensor, *, attn_mask: TreeMask, **settings: Any) -> Tensor:
    """Attention of one row (1 x heads x T x features), each block of queries on the keys it can see."""
    _, heads, length, features = query.shape
    count = len(attn_mask.keys)
    padded = pad(query[0], (0, 0, 0, count * BLOCK - length))
    result = scaled_dot_product_attention(
        padded.reshape(heads, count, BLOCK, features).transpose(0, 1),
        _seen(key, attn_mask.keys),
        _seen(value, attn_mask.keys),
        attn_mask=attn_mask.allowed,
        **settings,
    )
    return result.transpose(0, 1).flatten(1, 2)[None, :, :length]


def _seen(states: Tensor, keys: Tensor) -> Tensor:
    """Keys or values (1 x heads x T x features) of every block: blocks x heads x keys x features."""
    _, heads, _, features = states.shape
    return states[0].index_select(1, keys.flatten()).view(heads, *keys.shape, features).transpose(0, 1)
