"""The check at start that a layout is right for a model: it scores as one sequence at a time does."""

from __future__ import annotations

import logging
import random
from dataclasses import replace
from typing import Any

import torch
from accelerate.utils import extract_model_from_parallel
from torch import Tensor, nn

from partway.models.agreement import agrees, evaluating
from partway.models.layouts import LONGEST, SHORTEST, Bundle, Flat, Layout, Tree, TreeRows, score
from partway.models.packing import batched
from partway.models.targets import Targets
from partway.models.token_tree import grow

AnyTree = Tree | TreeRows
logger = logging.getLogger(__name__)


def checked_layout(model: nn.Module, wanted: Layout | None = None, *, pad_id: int = 0) -> Layout:
    """The first of `wanted` (default: trees) and its fallbacks that is right for the model."""
    wanted = wanted or Tree()
    layout: Layout = wanted
    while layout.fallback is not None and not (layout.suits(model) and _is_right(model, layout, pad_id)):
        layout = layout.fallback
    # Rows of trees may take the place of one row of trees without a word: they are as good.
    as_good = TreeRows(wanted.longest) if isinstance(wanted, Tree) else wanted
    if layout not in (wanted, as_good):
        logger.warning(
            "%s scores differently with the layout %s than one sequence at a time; using %s",
            type(extract_model_from_parallel(model)).__name__,
            wanted.name,
            f"trees of at most {layout.longest} tokens" if isinstance(layout, AnyTree) else layout.name,
        )
    return layout


def _is_right(model: nn.Module, layout: Layout, pad_id: int) -> bool:
    """Whether a tree longer than the layout allows, and as deep, scores as one sequence at a time does."""
    try:
        with evaluating(model):
            with torch.no_grad():
                same = _same_log_probs(model, layout, pad_id)
            return same and _same_gradient(model, layout, pad_id)
    except (RuntimeError, AttributeError, IndexError, TypeError, ValueError) as error:
        logger.info("%s cannot take the layout %s: %s", type(model).__name__, layout.name, error)
        return False


def _same_log_probs(model: nn.Module, layout: Layout, pad_id: int) -> bool:
    """Compared are beginnings of the last branch of a tree. What matters is measured by what another prompt
    would change, since a wrong layout changes what the model sees."""
    prompt, branches = _example(model, layout.longest if isinstance(layout, AnyTree) else LONGEST)
    beginnings = [branches[-1][:end] for end in range(len(branches[-1]), 0, -max(1, len(branches[-1]) // 8))]
    tree = Targets.of(prompt, (*beginnings, *branches[:-1]))
    # Without the layout's limit, which would split the tree that is to be checked.
    unsplit = replace(layout, longest=2 * layout.longest) if isinstance(layout, AnyTree) else layout
    (found,) = _log_probs(model, unsplit, tree, pad_id)

    alone = [Targets.of(tokens, beginnings) for tokens in (prompt, prompt[::-1])]
    rows = tuple((grow(problem, index=index),) for index, problem in enumerate(alone))

    def plain() -> list[Tensor]:
        return score(model, [Bundle(Flat(), rows)], alone, pad_id)

    expected, different = plain()
    return agrees(model, found[: len(beginnings)], lambda: plain()[0], (different - expected).norm())


def _same_gradient(model: nn.Module, layout: Layout, pad_id: int) -> bool:
    """Whether the gradient of the first parameter that gets one agrees: a cache might not pass it on.

    Of a fresh adapter, a product of two matrices, one is zero, and so is the gradient of the other.
    """
    problem = Targets.of(*_example(model, SHORTEST))

    def gradients(way: Layout, parameters: list[nn.Parameter]) -> tuple[Tensor, ...]:
        loss = _log_probs(model, way, problem, pad_id)[0].sum()
        return torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)

    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    expected = gradients(Flat(), learning) if learning else ()
    moved = [number for number, gradient in enumerate(expected) if gradient.any()]
    if not moved:
        return True
    first = [learning[moved[0]]]
    (found,) = gradients(layout, first)
    return agrees(model, found, lambda: gradients(Flat(), first)[0], expected[moved[0]].norm())


def _example(model: nn.Module, longest: int) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """A long random prompt and branches, in order: a tree a seventh longer than `longest`, and that deep."""
    config: Any = extract_model_from_parallel(model).config
    length = longest * 8 // 7
    branch = min(length, getattr(config, "max_position_embeddings", length)) // 8
    rng = random.Random(length)
    unread = length // branch - 6  # the last token of each branch
    tokens = [rng.randrange(config.vocab_size) for _ in range(length + unread)]
    branches = batched(tokens[6 * branch :], branch + 1)
    return tuple(tokens[: 6 * branch]), tuple(sorted(tuple(branch) for branch in branches))


def _log_probs(model: nn.Module, layout: Layout, problem: Targets, pad_id: int) -> list[Tensor]:
    return score(model, layout.bundles([problem], 2 * LONGEST), [problem], pad_id)
