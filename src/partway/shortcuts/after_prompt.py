"""Targets as rows after the cache of their prompt, which is read once: a layout for models without trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from accelerate.utils import extract_model_from_parallel
from torch import Tensor, nn

from partway.learning.layouts import Bundle, Flat
from partway.learning.passes import (
    Refusal,
    Rows,
    Term,
    batched,
    credited,
    credits_of,
    device_of,
    logits_at,
    token_scores,
    uploaded,
)
from partway.learning.token_tree import Targets, TokenTree, grow


@dataclass(frozen=True)
class SharedPrompt:
    """The prompt once, then every target as a row after its cache: for models that ignore position ids or
    masks given to them."""

    name = "shared_prompt"
    fallback = Flat()

    def hindrance(self, model: nn.Module) -> str | None:
        """Checkpointing of activations drops the cache."""
        if getattr(extract_model_from_parallel(model), "_is_stateful", False):
            return "keeps a running state"
        saves_room = any(getattr(module, "gradient_checkpointing", False) for module in model.modules())
        return "has gradient checkpointing" if saves_room else None

    def bundles(self, problems: Sequence[Targets], tokens_per_pass: int) -> list[Bundle]:
        """Targets that fit the budget as rows with a prompt each, since their caches take that room."""
        groups = [
            (i, p, group) for i, p in enumerate(problems) for group in _rows_at_once(p, tokens_per_pass)
        ]
        return [_AfterPrompt(self, ((grow(p, group, index=i),),)) for i, p, group in groups]

    def score(self, model: nn.Module, rows: Rows, pad_id: int, term: Term | None = None) -> Tensor:
        """Two forward passes: the prompt, then what follows it."""
        ((tree,),) = rows
        return score_after_prompt(model, tree, pad_id, term)


class _AfterPrompt(Bundle):
    """One tree."""

    @property
    def tokens_computed(self) -> int:
        """The prompt, and rows as long as the longest target without its last token."""
        (tree,) = self.trees
        return tree.prompt_length + len(tree.paths) * (max(map(len, tree.paths)) - 1)


def _rows_at_once(problem: Targets, tokens_per_pass: int) -> list[Sequence[int]]:
    # Targets of like length together: rows are padded to the longest of their pass.
    ordered = sorted(range(len(problem.targets)), key=lambda k: len(problem.targets[k]))
    length = len(problem.prompt) + len(problem.targets[ordered[-1]])
    return batched(ordered, max(1, tokens_per_pass // length))


def score_after_prompt(model: nn.Module, tree: TokenTree, pad_id: int, term: Term | None = None) -> Tensor:
    """One forward pass over the prompt, then one over all targets as rows after its repeated cache."""
    targets = [tree.wanted[path] for path in tree.paths]
    # The first token of every target follows the prompt, so its score comes from the first pass already.
    first_C, of_targets = np.unique([target[0] for target in targets], return_inverse=True)
    lengths = np.array([len(target) for target in targets])
    ids = np.full((len(targets), lengths.max() - 1), pad_id)
    for row, target in zip(ids, targets, strict=True):
        row[: len(target) - 1] = target[:-1]
    # Each target's first token, then its others, as credits are ordered.
    order = np.insert(
        len(first_C) + np.arange(lengths.sum() - len(targets)),
        np.cumsum(lengths) - lengths - np.arange(len(targets)),
        of_targets,
    )
    prompt, last, first, tokens, kept, wanted, ordered, slots, credits = uploaded(
        device_of(model),
        tree.tokens[None, : tree.prompt_length],
        np.array([tree.prompt_length - 1]),
        first_C,
        ids,
        np.flatnonzero(np.arange(ids.shape[1]) < lengths[:, None] - 1),
        np.concatenate([target[1:] for target in targets]),
        order,
        np.repeat(np.arange(len(targets)), lengths),
        credits_of([tree]),
    )
    output = logits_at(model, last, input_ids=prompt, use_cache=True)
    scores = [token_scores(output.logits.squeeze(0), torch.zeros_like(first), first, term)]
    if len(kept):
        # The prompt's keys and values once for every row: rows are as many sequences to the model.
        if (past := output.past_key_values) is None:
            raise Refusal("returns no cache")
        past.batch_repeat_interleave(len(targets))
        output = logits_at(model, kept, input_ids=tokens, past_key_values=past, use_cache=True)
        places = torch.arange(len(kept), device=kept.device)
        scores.append(token_scores(output.logits.squeeze(0), places, wanted, term))
    along = credited(torch.cat(scores).index_select(0, ordered), credits)
    return along.new_zeros(len(targets)).index_add(0, slots, along)


SHARED_PROMPT = SharedPrompt()
