"""The frontier of a sampling tree: its live rows, the samples they hold, and one step of all of them.

Array names end in their axes: R rows, S samples, C children, V vocabulary, L completion length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from partway.models.cache import RowCache, place
from partway.models.drawing import draw, uniforms
from partway.models.settings import SamplingSettings
from partway.models.stopping import TOKEN, AnswerWatch

PREFILL_TOKENS = 8192  # prompts are read in batches of at most this many tokens, padding included

Integers = NDArray[np.int64]
Streams = NDArray[np.uint64]

ROW = np.dtype(
    [
        ("prompt", np.int64),
        ("order", np.int64),  # the row's prompt was the order-th to be admitted
        ("limit", np.int64),  # the longest completion
        ("depth", np.int64),  # tokens drawn so far
        ("line", np.int64),  # the depth at which the current line starts
        ("next", np.int64),  # the last token, which the model has not read yet
        ("log_prob", np.float64),  # of the tokens drawn so far, at temperature 1 and unfiltered
    ]
)

# What has ended of one prompt: tokens without end-of-text, and whether they are finished (not cut off by
# length), to the number of samples that drew them and their log-probability (of end-of-text too, if drawn).
Ended = dict[tuple[tuple[int, ...], bool], tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Children:
    """The distinct continuations of all rows by one token, sorted by row.

    `of_samples` says which child each sample drew; the other arrays have an entry per child.
    """

    parents: Integers
    tokens: Integers
    log_probs: NDArray[np.float32]
    of_samples: Integers

    @property
    def counts(self) -> Integers:
        """How many samples drew each child."""
        return np.bincount(self.of_samples, minlength=len(self.parents))


class Frontier:
    """At most `budget` rows, each a distinct live prefix of the samples in `rows_S` that point to it."""

    def __init__(
        self,
        model: PreTrainedModel,
        settings: SamplingSettings,
        prompts: Sequence[Sequence[int]],
        limits: Sequence[int],
        *,
        budget: int,
        end_ids: Sequence[int],
        watch: AnswerWatch | None,
    ) -> None:
        self.model, self.settings, self.budget, self.watch = model, settings, budget, watch
        self.prompts, self.limits, self.device = prompts, limits, model.device
        self.is_end = np.zeros(model.config.vocab_size, bool)
        self.is_end[list(end_ids)] = True
        self.cache = RowCache(budget)
        self.rows = np.zeros(0, ROW)
        self.tokens_RL = np.zeros((budget, settings.max_completion_length), TOKEN)
        self.rows_S: Integers = np.zeros(0, np.int64)
        self.streams_S: Streams = np.zeros(0, np.uint64)
        self.admitted = 0
        self.ended: list[Ended] = [{} for _ in prompts]
        self.distinct = self.drawn = 0  # completions that ended so far, and the samples that drew them
        self.tokens_computed = 0

    def admit(self, waiting: Sequence[tuple[int, Streams]]) -> None:
        """Read the prompts that wait, all but the last token, and give each a row with its samples."""
        for batch in self._batches(waiting):
            prompts = [self.prompts[number] for number, _ in batch]
            lengths = np.array([len(prompt) - 1 for prompt in prompts])
            self.cache.admit(self._prefill(prompts, int(lengths.max())), lengths)
            first, new = len(self.rows), np.zeros(len(batch), ROW)
            new["prompt"] = [number for number, _ in batch]
            new["order"] = self.admitted + np.arange(len(batch))
            new["limit"] = [self.limits[number] for number, _ in batch]
            new["next"] = [prompt[-1] for prompt in prompts]
            self.rows = np.concatenate([self.rows, new])
            self.admitted += len(batch)
            sizes = [len(of_prompt) for _, of_prompt in batch]
            self.rows_S = np.concatenate([self.rows_S, np.repeat(np.arange(first, len(self.rows)), sizes)])
            self.streams_S = np.concatenate([self.streams_S, *(of_prompt for _, of_prompt in batch)])
            self.tokens_computed += int(lengths.sum())

    def expected_rows(self, share: float) -> int:
        """How many rows there may come to be if a `share` of the samples stays distinct."""
        if len(self.rows) == 0:
            return 0
        orders_R = self.rows["order"] - self.rows["order"].min()
        samples = np.bincount(orders_R[self.rows_S])
        return int(np.maximum(np.bincount(orders_R), np.ceil(share * samples)).sum())

    def advance(self) -> list[tuple[int, Streams]]:
        """Extend every sample by a token.

        Returns the samples of which prompts must start again because their rows would exceed the budget.
        """
        children = self._draw_children(self._forward())
        parents_C = self.rows[children.parents]
        finished_C = self._is_finished(children)
        ended_C = finished_C | (parents_C["depth"] + 1 >= parents_C["limit"])
        self._end(children, ended_C, finished_C)
        kept_C = self._within_budget(children, ~ended_C)
        evicted_C = ~(ended_C | kept_C)
        evicted = self._evicted(children, evicted_C) if evicted_C.any() else []
        self._become(children, kept_C)
        return evicted

    def _batches(self, waiting: Sequence[tuple[int, Streams]]) -> Iterator[list[tuple[int, Streams]]]:
        """What to read in one forward each."""
        batch: list[tuple[int, Streams]] = []
        longest = 0
        for one in waiting:
            longest = max(longest, len(self.prompts[one[0]]))
            if batch and longest * (len(batch) + 1) > PREFILL_TOKENS:
                yield batch
                batch, longest = [], len(self.prompts[one[0]])
            batch.append(one)
        if batch:
            yield batch

    def _prefill(self, prompts: Sequence[Sequence[int]], longest: int) -> DynamicCache:
        cache = DynamicCache()
        if longest:  # padding on the right is invisible to what stands before it, so no mask is needed
            ids = np.zeros((len(prompts), longest), np.int64)
            for row, prompt in zip(ids, prompts, strict=True):
                row[: len(prompt) - 1] = prompt[:-1]
            self._run(torch.from_numpy(ids), past_key_values=cache)
        return cache

    def _forward(self) -> Tensor:
        """The logits behind every row's last token, in float32."""
        mask = self.cache.mask()
        logits_RV = self._run(
            torch.from_numpy(self.rows["next"][:, None].copy()),
            past_key_values=self.cache,
            position_ids=torch.from_numpy(self.cache.lengths[:, None]).to(self.device),
            attention_mask=None if mask is None else mask.to(self.device),
        )
        self.cache.step()
        self.tokens_computed += len(self.rows)
        return logits_RV.float() if self.device.type != "mps" else logits_RV.float().cpu()  # for float64

    def _run(self, ids: Tensor, **inputs: object) -> Tensor:
        logits: Tensor = self.model(
            input_ids=ids.to(self.device), use_cache=True, logits_to_keep=1, **inputs
        ).logits
        return logits[:, -1]

    def _draw_children(self, logits_RV: Tensor) -> Children:
        vocabulary = logits_RV.shape[-1]
        uniforms_S = uniforms(self.streams_S, self.rows["depth"][self.rows_S])
        rows_S = torch.from_numpy(self.rows_S).to(logits_RV.device)
        drawn_S = draw(logits_RV, self.settings, rows_S, torch.from_numpy(uniforms_S).to(logits_RV.device))
        keys_C, of_S = np.unique(self.rows_S * vocabulary + drawn_S.cpu().numpy(), return_inverse=True)
        parents_C, tokens_C = np.divmod(keys_C, vocabulary)
        chosen_C = torch.from_numpy(keys_C).to(logits_RV.device)
        log_probs_C = logits_RV.flatten()[chosen_C] - logits_RV.logsumexp(-1)[chosen_C // vocabulary]
        return Children(parents_C, tokens_C, log_probs_C.cpu().numpy(), of_S)

    def _is_finished(self, children: Children) -> NDArray[np.bool_]:
        finished_C = self.is_end[children.tokens]
        if self.watch is not None:
            for child in np.flatnonzero(self.watch.has_newline[children.tokens] & ~finished_C):
                line_start = int(self.rows["line"][children.parents[child]])
                finished_C[child] = self.watch.closes(self._path(children, child), line_start)
        return finished_C

    def _path(self, children: Children, child: np.intp) -> NDArray[np.int32]:
        parent = children.parents[child]
        depth = self.rows["depth"][parent]
        path = self.tokens_RL[parent, : depth + 1].copy()
        path[depth] = children.tokens[child]
        return path

    def _end(self, children: Children, ended_C: NDArray[np.bool_], finished_C: NDArray[np.bool_]) -> None:
        counts_C = children.counts
        for child in np.flatnonzero(ended_C):
            parent = self.rows[children.parents[child]]
            path: list[int] = self._path(children, child).tolist()
            if self.is_end[path[-1]]:
                path.pop()
            ended, key = self.ended[parent["prompt"]], (tuple(path), bool(finished_C[child]))
            # A completion can end twice, if some of its samples had to start again.
            before, _ = ended.get(key, (0, 0.0))
            ended[key] = before + int(counts_C[child]), float(parent["log_prob"] + children.log_probs[child])
            self.distinct += 1
            self.drawn += int(counts_C[child])

    def _within_budget(self, children: Children, live_C: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The live children that there is room for; those of prompts admitted earlier go first."""
        live = np.flatnonzero(live_C)
        if len(live) <= self.budget:
            return live_C
        by_age = np.argsort(self.rows["order"][children.parents[live]], kind="stable")
        kept_C = np.zeros_like(live_C)
        kept_C[live[by_age[: self.budget]]] = True
        return kept_C

    def _evicted(self, children: Children, evicted_C: NDArray[np.bool_]) -> list[tuple[int, Streams]]:
        streams_S = self.streams_S[evicted_C[children.of_samples]]
        prompts_S = self.rows["prompt"][self.rows_S[evicted_C[children.of_samples]]]
        return [(int(prompt), streams_S[prompts_S == prompt]) for prompt in np.unique(prompts_S)]

    def _become(self, children: Children, kept_C: NDArray[np.bool_]) -> None:
        """Make the kept children the rows, each with the samples that drew it."""
        slots_C = np.full(len(kept_C), -1)
        slots_C[kept_C] = place(children.parents[kept_C])
        child_R = np.zeros(int(kept_C.sum()), np.int64)
        child_R[slots_C[kept_C]] = np.flatnonzero(kept_C)
        self._move(children.parents[child_R])
        self._append(children.tokens[child_R], children.log_probs[child_R])
        rows_S = slots_C[children.of_samples]
        self.rows_S, self.streams_S = rows_S[rows_S >= 0], self.streams_S[rows_S >= 0]

    def _move(self, parents_R: Integers) -> None:
        self.cache.select(parents_R)
        self.rows = self.rows[parents_R]
        moved = np.flatnonzero(parents_R != np.arange(len(parents_R)))
        self.tokens_RL[moved] = self.tokens_RL[parents_R[moved]]

    def _append(self, tokens_R: Integers, log_probs_R: NDArray[np.float32]) -> None:
        self.tokens_RL[np.arange(len(tokens_R)), self.rows["depth"]] = tokens_R
        self.rows["next"] = tokens_R
        self.rows["log_prob"] += log_probs_R
        if self.watch is not None:
            self.rows["line"] = self.watch.line_starts(tokens_R, self.rows["depth"], self.rows["line"])
        self.rows["depth"] += 1
