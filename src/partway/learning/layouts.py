"""Three ways to lay targets out for the model; each is an object that packs, scores and has a fallback.

Some models are right on a tree only up to a length: GPT-Neo's local attention counts places in the row, so a
branch loses its ancestors if the row is longer than the window; a mask of ours replaces sliding windows. So
trees longer than the length that was checked (`layout_check`) are split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from accelerate.utils import extract_model_from_parallel
from torch import Tensor, nn

from partway.learning.passes import (
    Grid,
    Row,
    Rows,
    Term,
    ancestors,
    attention_mask,
    longest_row,
    nodes_of,
    score_grid,
)
from partway.learning.token_tree import Targets, TokenTree, common_length, grow, split
from partway.learning.tree_attention import blocks, tree_mask

Item = TypeVar("Item")

# Nodes of the longest and the shortest trees; the second is the first, halved five times. What is checked
# is a seventh longer: 1024 and 32 tokens.
LONGEST, SHORTEST = 896, 28
WORTH_SHARING = 16  # tokens with which all prompts of a step begin, as the system message of a chat model
SIMILAR = 0.87  # the shortest row of a pass over its longest: at most 1 / 0.87 = 1.15 times the tokens needed


class Layout(Protocol):
    """A way of laying targets out."""

    @property
    def name(self) -> str:
        """What it is called in messages and reports."""

    @property
    def fallback(self) -> Layout | None:
        """What to try for a model for which this is wrong; None if it is right for every model."""

    def hindrance(self, model: nn.Module) -> str | None:
        """Why the model cannot be given this layout at all, if so."""

    def bundles(self, problems: Sequence[Targets], tokens_per_pass: int) -> list[Bundle]:
        """Everything there is to score, in passes within the budget."""

    def score(self, model: nn.Module, rows: Rows, pad_id: int, term: Term | None = None) -> Tensor:
        """log P(target | prompt) for the targets of each tree in the rows, in order, as one vector.

        With a `term`, that of each token's distribution is added to its log-prob.
        """


@dataclass(frozen=True)
class Bundle:
    """Rows of trees that go through the model in one pass, and how."""

    layout: Layout
    rows: Rows

    @property
    def trees(self) -> list[TokenTree]:
        """The trees of all rows, in order."""
        return [tree for row in self.rows for tree in row]

    @property
    def tokens_computed(self) -> int:
        """Tokens the model reads, padding included."""
        return len(self.rows) * longest_row(self.rows)

    def score(self, model: nn.Module, pad_id: int, term: Term | None = None) -> Tensor:
        """The score of the targets of each tree, in order, as one vector on the CPU.

        The loss that follows is many operations on few numbers, for which a GPU is slow.
        """
        return self.layout.score(model, self.rows, pad_id, term).cpu()

    def only(self, problems: frozenset[int]) -> Bundle | None:
        """The bundle without the trees of other problems; None if that is nothing."""
        # What a tree shared may be gone, so each has its own.
        rows = [tuple(replace(t, shared=0) for t in row if t.problem in problems) for row in self.rows]
        return replace(self, rows=tuple(row for row in rows if row)) if any(rows) else None


@dataclass(frozen=True)
class Flat:
    """Every target in a row of its own, with nothing but plain causal attention: right for any model."""

    name = "flat"
    fallback = None

    def hindrance(self, model: nn.Module) -> str | None:
        """Nothing."""
        return None

    def bundles(self, problems: Sequence[Targets], tokens_per_pass: int) -> list[Bundle]:
        """A problem's targets together, if the budget allows."""
        chains = [[grow(p, [k], index=i) for k in range(len(p.targets))] for i, p in enumerate(problems)]
        return [Bundle(self, rows) for rows in pack_chains(chains, tokens_per_pass)]

    def score(self, model: nn.Module, rows: Rows, pad_id: int, term: Term | None = None) -> Tensor:
        """Padding stands after the tokens, where causal attention does not look."""
        grid = Grid.of(rows, pad_id)
        # All ones, so that models which count positions from the mask count as they do without padding.
        mask = np.ones_like(grid.tokens)
        return score_grid(model, rows, grid, mask, term=term, reading=lambda seen: {"attention_mask": seen})


@dataclass(frozen=True)
class TreeRows:
    """Shared beginnings once, a row for each tree, an ordinary mask; trees have at most `longest` nodes."""

    longest: int = LONGEST
    name = "tree_rows"

    @property
    def fallback(self) -> Layout:
        """Trees of half the length, while they are worth it; no model is wrong with `Flat`."""
        return Tree(self.longest // 2) if self.longest // 2 >= SHORTEST else Flat()

    def hindrance(self, model: nn.Module) -> str | None:
        """Models with a running state read one text, not a tree; for others, the check finds out."""
        return hindrance(model)

    def bundles(self, problems: Sequence[Targets], tokens_per_pass: int) -> list[Bundle]:
        """Trees of similar lengths together; those with branches are split where they are too long."""
        return _tree_bundles(self, pack_into_rows, problems, tokens_per_pass)

    def score(self, model: nn.Module, rows: Rows, pad_id: int, term: Term | None = None) -> Tensor:
        """Depth is the position, ancestors are what is seen."""
        grid = Grid.of(rows, pad_id)

        def reading(positions: Tensor, allowed: Tensor) -> dict[str, Tensor]:
            return {"position_ids": positions, "attention_mask": attention_mask(model, allowed)}

        seen = grid.depths, ancestors(grid.ends)
        return score_grid(model, rows, grid, *seen, term=term, reading=reading)


@dataclass(frozen=True)
class Tree:
    """Shared beginnings once, all trees of a pass in one row, attention by blocks: for PyTorch's attention.

    Trees with branches have at most `longest` nodes. A beginning of all prompts is shared, too.
    """

    longest: int = LONGEST
    name = "tree"

    @property
    def fallback(self) -> Layout:
        """The same trees with an ordinary mask."""
        return TreeRows(self.longest)

    def hindrance(self, model: nn.Module) -> str | None:
        """Blocks of attention take the place of PyTorch's own."""
        return hindrance(model, "sdpa")

    def bundles(self, problems: Sequence[Targets], tokens_per_pass: int) -> list[Bundle]:
        """As many trees in a row as fit; those with branches are split where they are too long."""
        pack = partial(pack_into_one_row, longest=min(self.longest, tokens_per_pass))
        return _tree_bundles(self, pack, problems, tokens_per_pass)

    def score(self, model: nn.Module, rows: Rows, pad_id: int, term: Term | None = None) -> Tensor:
        """Depth is the position, ancestors are what is seen."""
        grid = Grid.of(rows, pad_id)

        def reading(positions: Tensor, *seen: Tensor) -> dict[str, Tensor]:
            return {"position_ids": positions, "attention_mask": tree_mask(positions.shape[1], *seen)}

        seen = grid.depths, *blocks(grid.ends[0])
        return score_grid(model, rows, grid, *seen, term=term, reading=reading)


def score(
    model: nn.Module,
    bundles: Sequence[Bundle],
    problems: Sequence[Targets],
    pad_id: int,
    term: Term | None = None,
) -> list[Tensor]:
    """The score of the targets of every problem; `bundles` are those of a layout over them."""
    # Log-probs are kept in float32 at least: sums of many bfloat16 ones would lose their last digits.
    dtype = torch.promote_types(next(model.parameters()).dtype, torch.float32)
    results = [torch.zeros(len(p.targets), dtype=dtype) for p in problems]
    for bundle in bundles:
        sizes = [len(tree.targets) for tree in bundle.trees]
        parts = torch.split(bundle.score(model, pad_id, term), sizes)
        for tree, log_probs in zip(bundle.trees, parts, strict=True):
            results[tree.problem][list(tree.targets)] = log_probs
    return results


def hindrance(model: nn.Module, *attentions: str) -> str | None:
    """Why the model reads no mask of queries and keys, if so; flash attention takes one of tokens only."""
    base: Any = extract_model_from_parallel(model)
    if getattr(base, "_is_stateful", False):  # as Mamba does, in place of keys and values
        return "keeps a running state"
    attention = base.config._attn_implementation
    return None if attention in (attentions or ("sdpa", "eager")) else f"has the attention {attention}"


def _tree_bundles(
    layout: Tree | TreeRows,
    pack: Callable[[Sequence[TokenTree], int], list[Rows]],
    problems: Sequence[Targets],
    tokens_per_pass: int,
) -> list[Bundle]:
    limit = min(layout.longest, tokens_per_pass)
    trees = [grow(p, group, index=i) for i, p in enumerate(problems) for group in split(p, limit)]
    # A single target longer than that is not a tree: plain attention is right for it at any length.
    chains = [[tree] for tree in trees if len(tree) > limit]
    flat = [Bundle(Flat(), rows) for rows in pack_chains(chains, tokens_per_pass)]
    packed = pack([tree for tree in trees if len(tree) <= limit], tokens_per_pass)
    return flat + [Bundle(layout, rows) for rows in packed]


def pack_into_one_row(trees: Sequence[TokenTree], tokens_per_pass: int, longest: int) -> list[Rows]:
    """Passes of one row each, without padding; where prompts begin alike, that is laid out once for many.

    All that hangs on such a beginning is one tree to the model, of at most `longest` nodes.
    """
    alone = [(tree,) for tree in trees]
    prompts = [tree.tokens[: tree.prompt_length].tolist() for tree in trees]
    # Of the first and the last in order, and so of all.
    shared = common_length(min(prompts), max(prompts)) if prompts else 0
    if shared < WORTH_SHARING:
        return [(row,) for row in _first_fit(alone, tokens_per_pass)]
    sharing = _first_fit([(replace(tree, shared=shared),) for tree in trees], longest - shared)
    together = [(replace(first, shared=0), *others) for first, *others in sharing]
    return [(row,) for row in _first_fit(together, tokens_per_pass)]


def _first_fit(groups: Sequence[Row], limit: int) -> list[Row]:
    """Groups joined up to a limit of nodes: each, the longest first, goes into the first row with room."""
    rows: list[Row] = []
    room: list[int] = []
    # This takes at most 11/9 of the fewest rows possible (Johnson 1973), and a few.
    for group in sorted(groups, key=nodes_of, reverse=True):
        fitting = next((i for i, left in enumerate(room) if left >= nodes_of(group)), None)
        if fitting is None:
            rows.append(group)
            room.append(limit - nodes_of(group))
        else:
            rows[fitting] += group
            room[fitting] -= nodes_of(group)
    return rows


def pack_into_rows(trees: Sequence[TokenTree], tokens_per_pass: int) -> list[Rows]:
    """Passes with a row for each tree, of similar lengths: attention is quadratic in the length of a row."""
    passes: list[list[TokenTree]] = []
    for tree in sorted(trees, key=len, reverse=True):
        longest = len(passes[-1][0]) if passes else 0
        if len(tree) >= SIMILAR * longest and passes and (len(passes[-1]) + 1) * longest <= tokens_per_pass:
            passes[-1].append(tree)
        else:
            passes.append([tree])
    return [tuple((tree,) for tree in trees) for trees in passes]


def pack_chains(problems: Sequence[Sequence[TokenTree]], tokens_per_pass: int) -> list[Rows]:
    """Passes over single-target trees, one to a row; a problem's rows share a pass if the budget allows."""
    passes: list[list[Row]] = []
    for chains in sorted(problems, key=lambda chains: max(map(len, chains)), reverse=True):
        rows = [(chain,) for chain in sorted(chains, key=len, reverse=True)]
        at_once = max(1, tokens_per_pass // len(rows[0][0]))
        # As few parts as possible: a problem in one pass needs no pass to weigh its targets first.
        for part in batched(rows, at_once):
            joined = [*passes[-1], *part] if passes else []
            if joined and len(joined) * max(len(chain) for (chain,) in joined) <= tokens_per_pass:
                passes[-1] = joined
            else:
                passes.append(list(part))
    return [tuple(rows) for rows in passes]


def batched(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Items in stretches of at most `size`."""
    return [items[start : start + size] for start in range(0, len(items), size)]
