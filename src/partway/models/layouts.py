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
from dataclasses import dataclass
from typing import Any

import torch
from accelerate.utils import extract_model_from_parallel
from torch import Tensor, nn

from partway.errors import ConfigError
from partway.models.packing import Pass, batched, pack_chains, pack_into_one_row, pack_into_rows
from partway.models.passes import score
from partway.models.token_tree import Targets, grow, split

logger = logging.getLogger(__name__)

LAYOUTS = ("tree", "shared_prompt", "flat")
LONGEST, SHORTEST, BUDGET = 1024, 32, 2048


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
    """Whether a wide and a deep tree, as long as the layout allows, score as one sequence at a time does."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for problem in _examples(model, layout.longest):
                if not _same_log_probs(model, layout, problem, pad_id):
                    return False
        return _same_gradient(model, layout, _examples(model, SHORTEST)[0], pad_id)
    except (RuntimeError, AttributeError, IndexError, TypeError, ValueError) as error:
        logger.info("%s cannot take the layout %s: %s", type(model).__name__, layout.name, error)
        return False
    finally:
        model.train(was_training)


def _examples(model: nn.Module, length: int) -> tuple[Targets, Targets]:
    """Random trees of `length` nodes: one with long branches, one that is nearly all prompt."""
    config: Any = extract_model_from_parallel(model).config
    depth = min(length, getattr(config, "max_position_embeddings", length))
    rng = random.Random(length)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(rng.randrange(config.vocab_size) for _ in range(count))

    branch = depth // 4
    trunk, prompt = tokens(branch // 2), tokens(branch)
    targets = [trunk + tokens(branch - branch // 2) for _ in range(2)]
    while missing := length - len(grow(Targets(prompt, tuple(targets)))):
        targets.append(tokens(min(branch, missing) + 1))
    return Targets(prompt, tuple(targets)), Targets(tokens(depth - 8), (tokens(5), tokens(5)))


def _same_log_probs(model: nn.Module, layout: Layout, problem: Targets, pad_id: int) -> bool:
    """Compared are the first and the last target of the tree; a difference counts when it is not small beside
    the one that another prompt makes, since it is what the model sees that a wrong layout changes."""
    ends = [problem.targets.index(choose(problem.targets)) for choose in (min, max)]
    chosen = Targets(problem.prompt, tuple(problem.targets[k] for k in ends))
    elsewhere = Targets(problem.prompt[::-1], chosen.targets)
    flat = Layout("flat").passes([chosen, elsewhere], BUDGET)
    expected, different = score(model, flat, [chosen, elsewhere], pad_id)
    (found,) = score(model, layout.passes([problem], BUDGET), [problem], pad_id)
    return bool((found[ends] - expected).norm() <= _tolerance(model) * (different - expected).norm())


def _same_gradient(model: nn.Module, layout: Layout, problem: Targets, pad_id: int) -> bool:
    """Whether the gradient of the first parameter that learns agrees: a cache might not pass it on."""
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad][:1]
    if not learning:
        return True
    gradients: list[Tensor] = []
    for one in (layout, Layout("flat")):
        (log_probs_S,) = score(model, one.passes([problem], BUDGET), [problem], pad_id)
        gradients += torch.autograd.grad(log_probs_S.sum(), learning)
    found, expected = gradients
    return bool((found - expected).norm() <= _tolerance(model) * expected.norm())


def _tolerance(model: nn.Module) -> float:
    return 0.01 if next(model.parameters()).dtype == torch.float32 else 0.1
