"""Checks at start that a layout is right for a model: it must score as one sequence at a time does."""

from __future__ import annotations

import logging
import random
import re
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch.distributed
from accelerate.utils import broadcast_object_list, extract_model_from_parallel
from torch import Tensor, nn
from torch.linalg import vector_norm

from partway import registry
from partway.errors import one_line
from partway.learning.layouts import LONGEST, Bundle, Flat, Layout, Tree, TreeRows, batched, score
from partway.learning.passes import Refusal, evaluating
from partway.learning.token_tree import Targets, grow

AnyTree = Tree | TreeRows
PACKAGE = str(Path(__file__).parents[1])
# What models raise that refuse a mask, positions or a cache.
REFUSALS = (Refusal, RuntimeError, AttributeError, LookupError, TypeError, ValueError)
logger = logging.getLogger(__name__)


def checked_layout(model: nn.Module, wanted: Layout | None = None, *, pad_id: int = 0) -> Layout:
    """The first of `wanted` (default: trees) and its fallbacks that is right for the model."""
    wanted = wanted or Tree()
    layout: Layout = wanted
    flaws = []
    while layout.fallback is not None and (flaw := flaw_found(model, layout, pad_id, _flaw)):
        flaws.append(flaw)
        layout = layout.fallback
    # Rows of trees may take the place of one row of trees without a word: they are as good.
    as_good = TreeRows(wanted.longest) if isinstance(wanted, Tree) else wanted
    if layout not in (wanted, as_good):
        logger.warning(
            "%s %s with the layout %s; using %s",
            type(extract_model_from_parallel(model)).__name__,
            flaws[0],
            wanted.name,
            f"trees of at most {layout.longest} tokens" if isinstance(layout, AnyTree) else layout.name,
        )
    return layout


def flaw_found(model: Any, way: Any, pad_id: int, find: Callable[..., str | None]) -> str | None:
    """What a check finds against a way of computing; a folder may know it from an earlier check.

    Of several processes the first one finds it for all: the others' weights may not be loaded yet.
    """
    known = registry.parts("checks").get("known")
    is_alone = not (torch.distributed.is_available() and torch.distributed.is_initialized())
    flaw: list[str | None] = [None]
    if is_alone or torch.distributed.get_rank() == 0:
        flaw[0] = find(model, way, pad_id) if known is None else known.load()(model, way, pad_id, find)
    return flaw[0] if is_alone else broadcast_object_list(flaw)[0]


def _flaw(model: nn.Module, layout: Layout, pad_id: int) -> str | None:
    """Why not to use the layout, if a tree as long and deep scores otherwise than one sequence at a time."""
    if hindrance := layout.hindrance(model):
        return hindrance
    try:
        with evaluating(model), torch.no_grad():
            same = _same_log_probs(model, layout, pad_id)
    except REFUSALS as error:
        return f"fails ({refusal(error)})"
    return None if same else "scores differently than one sequence at a time"


def refusal(error: Exception) -> str:
    """Why a model cannot read this way. An error of ours, or one with another reason, is raised again."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    in_ours = [file.startswith(PACKAGE) for file in files if "-packages/torch/" not in file][-1]
    other = "(CUDA|HIP) error|out of memory|deterministic|out of bounds|out of range in self|device"
    if (in_ours and not isinstance(error, Refusal)) or re.search(other, str(error)):
        raise error
    return one_line(error, lines=1)


def _same_log_probs(model: nn.Module, layout: Layout, pad_id: int) -> bool:
    """Compare beginnings of the last branch of a tree. The yardstick is what another prompt would change,
    since a wrong layout changes what the model sees."""
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
    scale = vector_norm(different - expected)
    return agrees(model, found[: len(beginnings)], expected, scale, lambda: plain()[0])


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


# Rounding errors in float32 are below a tenth of this share; a model that ignores positions is well above.
EXACT = 3e-4


def agrees(
    model: nn.Module, found: Tensor, expected: Tensor, scale: Tensor, plain: Callable[[], Tensor]
) -> bool:
    """Whether `found` is what is `expected`, which the `plain` way gives.

    In float32 a difference counts when it is not small beside `scale`, the norm of a difference that matters,
    nor within a unit in the last place of what is compared: small models hardly look at their prompts, so
    that the difference that matters is small too. In shorter floats it counts when it is larger than what
    rounding does to the plain way.
    """
    error = vector_norm(found - expected)
    if is_exact(model):
        return bool(error <= EXACT * scale + torch.finfo(expected.dtype).eps * vector_norm(expected))
    rounding = registry.parts("checks").get("rounding")
    allowed = scale / 2 if rounding is None else rounding.load()(model, expected, plain)
    # Never so much that a mistake would pass.
    return bool(error <= torch.minimum(allowed, scale / 2))


def is_exact(model: nn.Module) -> bool:
    """Whether rounding is far below what a mistake does."""
    dtype = next(model.parameters()).dtype
    is_shortened = torch.backends.cuda.matmul.fp32_precision == "tf32"  # however it was asked for
    return dtype == torch.float64 or (dtype == torch.float32 and not is_shortened)
