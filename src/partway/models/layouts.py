"""How targets are laid out for the model, and the check at start that a layout is right for it.

- `tree`: shared beginnings once, all trees of a pass in one row, attention by blocks;
- `tree_rows`: the same with a row for each tree and an ordinary mask, where attention is not PyTorch's own;
- `shared_prompt`: the prompt once, then every target as a row behind its cache: for models that ignore
  position ids or masks given to them;
- `flat`: every target in a row of its own, with nothing but plain causal attention: right for any model.

Some models are right on a tree only up to a length: GPT-Neo's local attention counts by place in the row, so
a branch loses sight of its ancestors once the row is longer than the window; sliding windows are lost under a
mask of our own. So trees are never longer than the length that was checked, and larger ones are split.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from accelerate.utils import extract_model_from_parallel
from torch import Tensor, nn

from partway.errors import ConfigError
from partway.models.packing import Pass, batched, pack_chains, pack_into_one_row, pack_into_rows
from partway.models.passes import score
from partway.models.targets import Targets
from partway.models.token_tree import grow, split

logger = logging.getLogger(__name__)

LAYOUTS = ("tree", "shared_prompt", "flat")
LONGEST, SHORTEST = 896, 28


@dataclass(frozen=True)
class Layout:
    """A way of laying targets out; trees with branches have at most `longest` nodes."""

    name: str
    longest: int = LONGEST

    def passes(self, problems: Sequence[Targets], tokens_per_pass: int) -> list[Pass]:
        """Everything there is to score, in passes within the budget."""
        numbered = list(enumerate(problems))
        if self.name == "flat":
            chains = [[grow(p, [k], index=i) for k in range(len(p.targets))] for i, p in numbered]
            return pack_chains(chains, tokens_per_pass)
        if self.name == "shared_prompt":
            groups = [(i, p, group) for i, p in numbered for group in _rows_at_once(p, tokens_per_pass)]
            return [Pass("shared_prompt", ((grow(p, group, index=i),),)) for i, p, group in groups]
        limit = min(self.longest, tokens_per_pass)
        trees = [grow(p, group, index=i) for i, p in numbered for group in split(p, limit)]
        pack = pack_into_one_row if self.name == "tree" else pack_into_rows
        chains = [[tree] for tree in trees if len(tree) > limit]
        return pack_chains(chains, tokens_per_pass) + pack(
            [tree for tree in trees if len(tree) <= limit], tokens_per_pass
        )


def _rows_at_once(problem: Targets, tokens_per_pass: int) -> list[Sequence[int]]:
    """Targets in groups that fit the budget as rows with a prompt each: their caches take that room."""
    ordered = sorted(range(len(problem.targets)), key=lambda k: len(problem.targets[k]))
    length = len(problem.prompt) + len(problem.targets[ordered[-1]])
    return batched(ordered, max(1, tokens_per_pass // length))


def checked_layout(
    model: nn.Module, layout: str = "tree", *, longest: int = LONGEST, pad_id: int = 0
) -> Layout:
    """The first of `layout` and what follows it in `LAYOUTS` that scores as one sequence at a time does."""
    if layout not in LAYOUTS:
        raise ConfigError(f"layout is {layout!r}, expected one of {', '.join(LAYOUTS)}")
    others = [Layout(name) for name in ("shared_prompt", "flat")]
    candidates = [*_trees(model, longest), *others] if layout == "tree" else others[layout == "flat" :]
    right = next(one for one in candidates if one.name == "flat" or _is_right(model, one, pad_id))
    if right.longest < longest or not right.name.startswith(layout):
        logger.warning(
            "%s scores differently with the layout %s than one sequence at a time; using %s",
            type(extract_model_from_parallel(model)).__name__,
            layout,
            f"trees of at most {right.longest} tokens" if right.longest < longest else right.name,
        )
    return right


def _trees(model: nn.Module, longest: int) -> list[Layout]:
    """Trees that are shorter and shorter; in one row only where the model's attention is PyTorch's."""
    config: Any = extract_model_from_parallel(model).config
    names = ("tree", "tree_rows") if config._attn_implementation == "sdpa" else ("tree_rows",)
    halved = [longest >> times for times in range(longest.bit_length())]
    return [Layout(name, length) for length in halved if length >= SHORTEST for name in names]


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
    """Compared are beginnings of the last branch of a tree; a difference counts when it is not small beside
    the one that another prompt makes, since what the model sees is what a wrong layout changes."""
    prompt, branches = _example(model, layout.longest)
    beginnings = [branches[-1][:end] for end in range(len(branches[-1]), 0, -max(1, len(branches[-1]) // 8))]
    tree = Targets.of(prompt, (*beginnings, *branches[:-1]))
    alone = [Targets.of(tokens, beginnings) for tokens in (prompt, prompt[::-1])]
    rows = tuple((grow(problem, index=index),) for index, problem in enumerate(alone))
    expected, different = score(model, [Pass("flat", rows)], alone, pad_id)
    (found,) = _log_probs(model, replace(layout, longest=2 * layout.longest), tree, pad_id)
    error = (found[: len(beginnings)] - expected).norm()
    return bool(error <= _tolerance(model) * (different - expected).norm())


def _same_gradient(model: nn.Module, layout: Layout, pad_id: int) -> bool:
    """Whether the gradient of the first parameter that learns agrees: a cache might not pass it on."""
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad][:1]
    if not learning:
        return True
    problem = Targets.of(*_example(model, SHORTEST))
    losses = [_log_probs(model, one, problem, pad_id)[0].sum() for one in (layout, Layout("flat"))]
    (found,), (expected,) = [torch.autograd.grad(loss, learning) for loss in losses]
    return bool((found - expected).norm() <= _tolerance(model) * expected.norm())


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
    return score(model, layout.passes([problem], 2 * LONGEST), [problem], pad_id)


def _tolerance(model: nn.Module) -> float:
    """Rounding errors are below a tenth of this; a model that ignores positions or masks is well above."""
    exact = (
        next(model.parameters()).dtype == torch.float32 and torch.get_float32_matmul_precision() == "highest"
    )
    return 3e-4 if exact else 0.05
