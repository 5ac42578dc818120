"""One pass through the model: it scores each edge of every tree once, and so every target.

Only nodes with a token to score reach the output head, because logits dominate time and memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MethodType
from typing import Any

import numpy as np
import torch
from accelerate.utils import extract_model_from_parallel
from accelerate.utils.operations import ConvertOutputsToFp32
from numpy.typing import NDArray
from torch import Tensor, nn

from partway.learning.token_tree import Integers, TokenTree

# Rows of logits that are widened to float32 at a time: all of them at once would double the memory. On a GPU
# more, since each time costs what it takes to launch a few operations.
ROWS_AT_ONCE, ROWS_AT_ONCE_ON_GPU = 64, 512

Row = tuple[TokenTree, ...]
Rows = tuple[Row, ...]  # what goes through the model at once
# What a token's distribution, a row of log-probs over the vocabulary, adds to the token's own log-prob.
Term = Callable[[Tensor], Tensor]


class Refusal(Exception):
    """A model does not take the mask or the cache it is given."""


def nodes_of(row: Row) -> int:
    """How many nodes the trees of a row lay out."""
    return sum(tree.added for tree in row)


def longest_row(rows: Rows) -> int:
    """The length of the longest row, to which the others are padded."""
    return max(map(nodes_of, rows))


def empty_pass(model: nn.Module, pad_id: int) -> Tensor:
    """Zero, with every parameter in its graph: what a process with nothing left to do contributes."""
    tokens = torch.full((1, 1), pad_id, device=device_of(model))
    logits: Tensor = model(input_ids=tokens, use_cache=False).logits
    return 0.0 * logits.sum()


@dataclass(frozen=True)
class Grid:
    """Rows of trees as arrays, rows by tokens; `sources` are places in the flattened arrays, one per edge."""

    tokens: Integers
    depths: Integers
    ends: Integers
    sources: Integers

    @classmethod
    def of(cls, rows: Rows, pad_id: int) -> Grid:
        """The trees of each row one after the other, then padding."""
        length = longest_row(rows)
        size = (len(rows), length)
        tokens = np.full(size, pad_id)
        depths = np.zeros(size, dtype=np.int64)
        ends = np.broadcast_to(np.arange(1, length + 1), size).copy()  # padding sees itself only
        sources = []
        for row, trees in enumerate(rows):
            first = start = 0
            for tree in trees:
                first = first if tree.shared else start  # where the nodes that it shares are
                own, stretch = slice(tree.shared, None), slice(start, start + tree.added)
                tokens[row, stretch], depths[row, stretch] = tree.tokens[own], tree.depths[own]
                moved = start - tree.shared
                ends[row, stretch] = tree.ends[own] + moved
                ends[row, first : first + tree.shared] = stretch.stop  # this tree, too, stands below them
                places = tree.sources + np.where(tree.sources < tree.shared, first, moved)
                sources.append(places + row * length)
                start = stretch.stop
        return cls(tokens, depths, ends, np.concatenate(sources))


def score_grid(
    model: nn.Module,
    rows: Rows,
    grid: Grid,
    *seen: NDArray[Any],
    term: Term | None = None,
    reading: Callable[..., dict[str, Tensor]],
) -> Tensor:
    """The score of each tree's targets, in order: log P(target | prompt), with `term` and credits if any.

    `reading` says how the model reads, given what is `seen` where the model is.
    """
    trees = [tree for row in rows for tree in row]
    # Targets that part at a node share its logits: the head reads every node once, however many leave it.
    kept_N, sources_E = np.unique(grid.sources, return_inverse=True)
    wanted_E = np.concatenate([tree.wanted for tree in trees])
    starts = np.cumsum([0, *(len(tree.wanted) for tree in trees)])
    paths = [path + start for tree, start in zip(trees, starts, strict=False) for path in tree.paths]
    slots = np.repeat(np.arange(len(paths)), [len(path) for path in paths])
    arrays = grid.tokens, kept_N, sources_E, wanted_E, np.concatenate(paths), slots, _credits_of(trees)
    placed = uploaded(device_of(model), *arrays, *seen)
    tokens, kept, sources, wanted, path, of_targets, credits, *others = placed
    output = logits_at(model, kept, input_ids=tokens, use_cache=False, **reading(*others))
    along = token_scores(output.logits.squeeze(0), sources, wanted, term)[path]
    along = along * credits.to(along) if len(credits) else along
    return along.new_zeros(len(paths)).index_add(0, of_targets, along)


def ancestors(ends: Integers) -> NDArray[np.bool_]:
    """Who attends to whom (row, 1, query, key), from the `ends` of the nodes in every row."""
    nodes = np.arange(ends.shape[1])[:, None]
    # Node i sees j exactly if j <= i < ends[j]: a node's descendants are one stretch after it.
    below: NDArray[np.bool_] = (nodes >= nodes.T) & (nodes < ends[:, None, None, :])
    return below


def attention_mask(model: Any, allowed: Tensor) -> Tensor:
    """Who attends to whom (row, 1, query, key) as the attention of the model wants it."""
    model = extract_model_from_parallel(model)
    if model.config._attn_implementation == "sdpa":
        return allowed
    dtype = next(model.parameters()).dtype
    # Other attentions add the mask to their scores, so what is not seen gets the lowest number there is.
    mask = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device)
    return mask.masked_fill(~allowed, torch.finfo(dtype).min)


def logits_at(model: nn.Module, kept: Tensor, **inputs: Any) -> Any:
    """The model's output with logits for the `kept` positions (of the flattened rows) only."""
    base = extract_model_from_parallel(model)
    with _reads_only(base.get_output_embeddings(), kept), _as_computed(base):
        return model(**inputs)


@contextmanager
def _as_computed(model: Any) -> Iterator[None]:
    """While open, logits stay as short as autocast made them; accelerate would widen all of them at once."""
    forward = model.__dict__.get("forward")
    widened = getattr(getattr(forward, "__func__", None), "__wrapped__", None)
    if not isinstance(widened, ConvertOutputsToFp32):
        yield
        return
    model.forward = MethodType(widened.model_forward, model)
    try:
        yield
    finally:
        model.forward = forward


@contextmanager
def _reads_only(head: nn.Module, kept: Tensor) -> Iterator[None]:
    """While open, `head` gets only the `kept` positions; what the model does to logits later is untouched."""

    def select(_: nn.Module, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (arguments[0].flatten(0, 1)[kept][None], *arguments[1:])

    hook = head.register_forward_pre_hook(select)
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode, afterwards in whatever mode it was."""
    mode = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(mode)


class _TokenScores(torch.autograd.Function):
    """log softmax(logits)[source, token] and a term of the row, with no array of the logits' size but theirs.

    The gradient is written over the logits, which dominate memory: a second backward is an error.
    Sums are in float32, or in float64 where the logits are.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, sources: Tensor, tokens: Tensor, term: Term | None) -> Tensor:
        wide = torch.promote_types(logits.dtype, torch.float32)
        ctx.at_once = ROWS_AT_ONCE if logits.device.type == "cpu" else ROWS_AT_ONCE_ON_GPU
        parts = torch.split(logits, ctx.at_once)
        totals = torch.cat([part.to(wide).logsumexp(-1) for part in parts])
        ctx.save_for_backward(logits, totals, sources, tokens)
        ctx.term = term
        scores = logits[sources, tokens].to(wide) - totals[sources]
        if term is None:
            return scores
        pairs = zip(parts, torch.split(totals, ctx.at_once), strict=True)
        terms_N = torch.cat([term(part.to(wide) - total[:, None]) for part, total in pairs])
        return scores + terms_N[sources]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        logits, totals, sources, tokens = ctx.saved_tensors
        # d/dlogits of log softmax is (1 at the token) - P, weighted by all that was scored in the row.
        weights = torch.zeros_like(totals).index_add_(0, sources, gradients[0])
        # The scored tokens apart, so that 1 - P is taken in float32 also where the logits are shorter floats.
        chances = (logits[sources, tokens].to(totals) - totals[sources]).exp_()
        scored = gradients[0] - weights[sources] * chances
        for start in range(0, len(logits), ctx.at_once):
            rows = slice(start, start + ctx.at_once)
            part = logits[rows]
            wide = part.to(totals)  # itself, if it is wide enough
            wide.sub_(totals[rows, None])
            added = None if ctx.term is None else _through_softmax(ctx.term, wide, weights[rows])
            wide.exp_().mul_(-weights[rows, None])
            if added is not None:
                wide.add_(added)
                here = (sources >= start) & (sources < start + ctx.at_once)
                scored[here] += added[sources[here] - start, tokens[here]]
            if wide is not part:
                part.copy_(wide)
        logits[sources, tokens] = scored.to(logits.dtype)
        return logits, None, None, None


def _through_softmax(term: Term, log_probs_N_V: Tensor, weights_N: Tensor) -> Tensor:
    """The gradient with respect to logits of a term of their log softmax."""
    with torch.enable_grad():
        given = log_probs_N_V.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(term(given), given, weights_N)
    return gradient - given.detach().exp() * gradient.sum(-1, keepdim=True)


def token_scores(logits: Tensor, sources: Tensor, tokens: Tensor, term: Term | None = None) -> Tensor:
    """log P of `tokens[e]` under row `sources[e]`, once per pair, plus the row's term; at least float32."""
    result: Tensor = _TokenScores.apply(logits, sources, tokens, term)  # type: ignore[no-untyped-call]
    return result


def _credits_of(trees: Sequence[TokenTree]) -> NDArray[np.float64]:
    """What each token of every target counts, one target after the other; empty if all count alike."""
    if not any(tree.credits for tree in trees):
        return np.zeros(0)
    of_paths = [(tree, *one) for tree in trees for one in zip(tree.targets, tree.paths, strict=True)]
    return np.concatenate([tree.credits.get(k, np.ones(len(path))) for tree, k, path in of_paths])


def uploaded(device: torch.device, *arrays: NDArray[Any]) -> list[Tensor]:
    """Arrays where the model is: to a GPU they go in one copy, because it waits for each."""
    if device.type == "cpu":
        return [torch.from_numpy(array) for array in arrays]
    if device.type == "mps":  # Apple's GPUs have no float64
        arrays = tuple(array.astype(np.float32) if array.dtype == float else array for array in arrays)
    # Each begins at a multiple of eight bytes, so that it can be seen as any kind of number.
    plain = [np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in arrays]
    padded = [np.pad(one, (0, -len(one) % 8)) for one in plain]
    copies = torch.split(torch.from_numpy(np.concatenate(padded)).to(device), [len(one) for one in padded])
    pairs = zip(copies, map(torch.from_numpy, arrays), strict=True)
    return [copy[: given.nbytes].view(given.dtype).view(given.shape) for copy, given in pairs]


def device_of(model: nn.Module) -> torch.device:
    """Where the model's weights are."""
    return next(model.parameters()).device
