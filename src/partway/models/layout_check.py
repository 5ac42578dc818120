"""The check at start that a layout is right for a model: it scores as one sequence at a time does."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from accelerate.utils import extract_model_from_parallel
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from partway.models.layouts import LONGEST, SHORTEST, Bundle, Flat, Layout, Tree, TreeRows, score
from partway.models.packing import batched
from partway.models.targets import Targets
from partway.models.token_tree import grow

AnyTree = Tree | TreeRows
# Rounding errors in float32 are below a tenth of this share; a model that ignores positions is well above.
EXACT = 3e-4
ROUNDINGS = 2  # how often the effect of rounding is measured in shorter floats
logger = logging.getLogger(__name__)


def checked_layout(model: nn.Module, wanted: Layout | None = None, *, pad_id: int = 0) -> Layout:
    """The first of `wanted` (default: trees) and its fallbacks that is right for the model."""
    wanted = wanted or Tree()
    layout: Layout = wanted
    while layout.fallback is not None and not (layout.suits(model) and _is_right(model, layout, pad_id)):
        layout = layout.fallback
    if layout not in (wanted, _as_good(wanted)):
        logger.warning(
            "%s scores differently with the layout %s than one sequence at a time; using %s",
            type(extract_model_from_parallel(model)).__name__,
            wanted.name,
            f"trees of at most {layout.longest} tokens" if isinstance(layout, AnyTree) else layout.name,
        )
    return layout


def _as_good(layout: Layout) -> Layout:
    """What may take the layout's place without a word."""
    return TreeRows(layout.longest) if isinstance(layout, Tree) else layout


def _is_right(model: nn.Module, layout: Layout, pad_id: int) -> bool:
    """Whether a tree longer than the layout allows, and as deep, scores as one sequence at a time does."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            same = _same_log_probs(model, layout, pad_id)
        return same and _same_gradient(model, layout, pad_id)
    except (RuntimeError, AttributeError, IndexError, TypeError, ValueError) as error:
        logger.info("%s cannot take the layout %s: %s", type(model).__name__, layout.name, error)
        return False
    finally:
        model.train(was_training)


def _same_log_probs(model: nn.Module, layout: Layout, pad_id: int) -> bool:
    """Compared are beginnings of the last branch of a tree. In float32 a difference counts when it is not
    small beside the one that another prompt makes, since what the model sees is what a wrong layout changes;
    in shorter floats, when it is larger than what rounding does to plain rows."""
    prompt, branches = _example(model, _longest(layout))
    beginnings = [branches[-1][:end] for end in range(len(branches[-1]), 0, -max(1, len(branches[-1]) // 8))]
    tree = Targets.of(prompt, (*beginnings, *branches[:-1]))
    alone = [Targets.of(tokens, beginnings) for tokens in (prompt, prompt[::-1])]
    rows = tuple((grow(problem, index=index),) for index, problem in enumerate(alone))
    plain = Bundle(Flat(), rows)
    expected, different = score(model, [plain], alone, pad_id)
    (found,) = _log_probs(model, _unsplit(layout), tree, pad_id)
    error = (found[: len(beginnings)] - expected).norm()
    largest = (different - expected).norm()
    if _is_exact(model):
        return bool(error <= EXACT * largest)
    noises = []
    for seed in range(ROUNDINGS):
        with _rounded_otherwise(model, seed):
            noises.append((score(model, [plain], alone, pad_id)[0] - expected).norm())
    return bool(error <= torch.minimum(1.5 * torch.stack(noises).max(), largest / 2))


def _same_gradient(model: nn.Module, layout: Layout, pad_id: int) -> bool:
    """Whether the gradient of the first parameter that gets one agrees: a cache might not pass it on.

    Of a fresh adapter, a product of two matrices, one is zero, and so is the gradient of the other.
    """
    problem = Targets.of(*_example(model, SHORTEST))
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not learning:
        return True
    losses = [_log_probs(model, way, problem, pad_id)[0].sum() for way in (Flat(), layout)]
    for parameter in learning:
        expected, found = [_gradient(loss, parameter) for loss in losses]
        if expected.any():
            tolerance = EXACT if _is_exact(model) else 0.05
            return bool((found - expected).norm() <= tolerance * expected.norm())
    return True


def _gradient(loss: Tensor, parameter: Tensor) -> Tensor:
    (gradient,) = torch.autograd.grad(
        loss, parameter, retain_graph=True, allow_unused=True, materialize_grads=True
    )
    return gradient


@contextmanager
def _rounded_otherwise(model: nn.Module, seed: int) -> Iterator[None]:
    """While open, what each layer puts out is moved by half a unit in its last place, up or down by chance.

    Two right ways to compute the same thing differ as rounding does: this says by how much.
    """
    generator = torch.Generator().manual_seed(seed)

    def move(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        half = torch.finfo(torch.bfloat16 if output.dtype == torch.float32 else output.dtype).eps / 2
        signs = 2 * torch.randint(0, 2, output.shape, generator=generator).to(output.device) - 1
        return (output.float() * (1 + half * signs)).to(output.dtype)

    layers = (m for m in model.modules() if isinstance(m, (nn.Linear, nn.Embedding, Conv1D)))
    hooks = [layer.register_forward_hook(move) for layer in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _longest(layout: Layout) -> int:
    return layout.longest if isinstance(layout, AnyTree) else LONGEST


def _unsplit(layout: Layout) -> Layout:
    """The layout without its limit, which would split the tree that is to be checked."""
    return replace(layout, longest=2 * layout.longest) if isinstance(layout, AnyTree) else layout


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


def _is_exact(model: nn.Module) -> bool:
    """Whether rounding is far below what a wrong layout does."""
    dtype = next(model.parameters()).dtype
    is_tf32 = dtype == torch.float32 and torch.get_float32_matmul_precision() != "highest"
    return dtype in (torch.float32, torch.float64) and not is_tf32
