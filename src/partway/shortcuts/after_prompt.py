"""Targets as rows after the cache of their prompt, which is read once: a layout for models without trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from partway.learning.layouts import Bundle, Flat, keeps_a_state
from partway.learning.passes import (
    Rows,
    Term,
    batched,
    credited,
    device_of,
    logits_at,
    to_tensor,
    token_scores,
)
from partway.learning.token_tree import Targets, TokenTree, grow


@dataclass(frozen=True)
class SharedPrompt:
    """The prompt once, then every target as a row after its cache: for models that ignore position ids or
    masks given to them."""

    name = "shared_prompt"
    fallback = Flat()

    def suits(self, model: nn.Module) -> bool:
        """Checkpointing of activations drops the cache."""
        saves_room = any(getattr(module, "gradient_checkpointing", False) for module in model.modules())
        return not saves_room and not keeps_a_state(model)

    def bundles(self, problems: Sequence[Targets], tokens_per_pass: int) -> list[Bundle]:
        """Targets that fit the budget as rows with a prompt each, since their caches take that room."""
        groups = [
            (i, p, group) for i, p in enumerate(problems) for group in _rows_at_once(p, tokens_per_pass)
        ]
        return [Bundle(self, ((grow(p, group, index=i),),)) for i, p, group in groups]

    def score(self, model: nn.Module, rows: Rows, pad_id: int, term: Term | None = None) -> Tensor:
        """Two forward passes: the prompt, then what follows it."""
        ((tree,),) = rows
        return score_after_prompt(model, tree, pad_id, term)

    def tokens_computed(self, rows: Rows) -> int:
        """The prompt, and rows as long as the longest target without its last token."""
        ((tree,),) = rows
        return tree.prompt_length + len(tree.paths) * (max(map(len, tree.paths)) - 1)


def _rows_at_once(problem: Targets, tokens_per_pass: int) -> list[Sequence[int]]:
    # Targets of like length together: rows are padded to the longest of their pass.
    ordered = sorted(range(len(problem.targets)), key=lambda k: len(problem.targets[k]))
    length = len(problem.prompt) + len(problem.targets[ordered[-1]])
    return batched(ordered, max(1, tokens_per_pass // length))


def score_after_prompt(model: nn.Module, tree: TokenTree, pad_id: int, term: Term | None = None) -> Tensor:
    """One forward pass over the prompt, then one over all targets as rows after its repeated cache."""
    device = device_of(model)
    prompt = to_tensor(tree.tokens[None, : tree.prompt_length], device)
    last = torch.tensor([tree.prompt_length - 1], device=device)
    output = logits_at(model, last, input_ids=prompt, use_cache=True)
    targets = [tree.wanted[path] for path in tree.paths]
    # The first token of every target follows the prompt, so its log-prob comes from the first pass already.
    first_S = to_tensor(np.array([target[0] for target in targets]), device)
    first = token_scores(output.logits.squeeze(0), torch.zeros_like(first_S), first_S, term)
    length = max(map(len, targets)) - 1
    if length == 0:
        return credited(first, [tree])
    tokens = np.full((len(targets), length), pad_id)
    for row, target in enumerate(targets):
        tokens[row, : len(target) - 1] = target[:-1]
    kept = [row * length + column for row, target in enumerate(targets) for column in range(len(target) - 1)]
    wanted = np.concatenate([target[1:] for target in targets])
    # The prompt's keys and values once for every row: rows are as many sequences to the model.
    output.past_key_values.batch_repeat_interleave(len(targets))
    output = logits_at(
        model,
        torch.tensor(kept, device=device),
        input_ids=to_tensor(tokens, device),
        past_key_values=output.past_key_values,
        use_cache=True,
    )
    rest = token_scores(
        output.logits.squeeze(0), torch.arange(len(kept), device=device), to_tensor(wanted, device), term
    )
    # Each target's first token, then its others, as `credited` has them.
    lengths = np.array([len(target) for target in targets])
    slots = np.repeat(np.arange(len(targets)), lengths)
    starts = np.cumsum(lengths) - lengths
    order = np.insert(
        np.arange(len(rest)) + len(targets), starts - np.arange(len(targets)), np.arange(len(targets))
    )
    along = credited(torch.cat([first, rest])[to_tensor(order, device)], [tree])
    return along.new_zeros(len(targets)).index_add(0, to_tensor(slots, device), along)


SHARED_PROMPT = SharedPrompt()
