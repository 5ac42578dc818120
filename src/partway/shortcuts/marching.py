"""Sampling with rows of one length, which all read one token a step, on top of the model's own cache.

For models with a running state or mixed layers, whose rows can neither be padded nor shifted. Of prompts of
different lengths the shortest begins to draw while the others still read theirs, a token a step; so no row
is ever padded, and masks and positions are the model's own. Rows still split into distinct children only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from transformers import Cache, PreTrainedModel

from partway.learning.passes import logits_at, uploaded
from partway.learning.token_tree import Integers
from partway.sampling.drawing import draw, fetched, to_draw_from, uniforms
from partway.sampling.frontier import Ended, SamplingTask, Streams
from partway.sampling.samplers import Drawn, Sampler

KEPT = ("past_key_values", "cache_params", "state")  # what models call what they keep of a text


class Reader(Protocol):
    """A model that has read the same number of tokens of every row."""

    tokens_computed: int

    def read(self, ids_RT: Tensor) -> Tensor:
        """The logits after the last token of each row, after it has read these tokens more."""

    def select(self, parents: Tensor) -> None:
        """Let row i go on from the row `parents[i]`."""


class OwnCache:
    """Reads on from what the model itself keeps of a text, whatever that is."""

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        self.kept: dict[str, Any] = {}
        self.tokens_computed = 0

    def read(self, ids_RT: Tensor) -> Tensor:
        """One forward over the new tokens."""
        output = _read(self.model, ids_RT, use_cache=True, **self.kept)
        self.kept = {name: kept for name in KEPT if (kept := getattr(output, name, None)) is not None}
        self.tokens_computed += ids_RT.numel()
        return to_draw_from(output.logits[0])

    def select(self, parents: Tensor) -> None:
        """Beams are selected in the same way."""
        for name, kept in self.kept.items():
            if isinstance(kept, Cache):
                kept.reorder_cache(parents)
            else:
                self.kept[name] = [part.index_select(0, parents.to(part.device)) for part in kept]


class WholeTexts:
    """Reads everything again at every step: slow, and right for any causal model."""

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        self.texts: Tensor | None = None
        self.tokens_computed = 0

    def read(self, ids_RT: Tensor) -> Tensor:
        """One forward over all tokens so far."""
        self.texts = ids_RT if self.texts is None else torch.cat([self.texts, ids_RT], 1)
        self.tokens_computed += self.texts.numel()
        return to_draw_from(_read(self.model, self.texts, use_cache=False).logits[0])

    def select(self, parents: Tensor) -> None:
        """Rows of tokens."""
        if self.texts is not None:
            self.texts = self.texts[parents.to(self.texts.device)]


def _read(model: PreTrainedModel, ids_RT: Tensor, **inputs: Any) -> Any:
    ids_RT = ids_RT.to(model.device)
    rows, length = ids_RT.shape
    last = torch.arange(1, rows + 1, device=ids_RT.device) * length - 1
    return logits_at(model, last, input_ids=ids_RT, **inputs)


@dataclass(frozen=True)
class LiveText:
    """A distinct live text: the prompt, what was drawn after it, and the streams of the samples that did."""

    prompt: int
    streams: Streams
    drawn: tuple[int, ...] = ()
    log_prob: float = 0.0


def march(reader: Reader, task: SamplingTask, rows: Sequence[LiveText], ended: Sequence[Ended]) -> None:
    """Complete rows that nothing has been read of; what ends is added to what has `ended` of its prompt."""
    place = min(len(task.prompts[row.prompt]) for row in rows)
    ids = torch.tensor([list(task.prompts[row.prompt][:place]) for row in rows])
    while rows:
        logits_RV = reader.read(ids)
        rows, parents, tokens = _next(logits_RV, task, rows, place, ended)
        reader.select(torch.tensor(parents, dtype=torch.int64, device=logits_RV.device))
        ids = torch.tensor(tokens)[:, None]
        place += 1


def groups(task: SamplingTask) -> Iterator[list[LiveText]]:
    """Rows for prompts of like length together, with no more samples than the budget has rows."""
    group: list[LiveText] = []
    room = task.budget
    for prompt in sorted(range(len(task.prompts)), key=lambda number: len(task.prompts[number])):
        waiting = task.streams[prompt]
        while len(waiting):
            group.append(LiveText(prompt, waiting[:room]))
            waiting, room = waiting[room:], room - len(group[-1].streams)
            if room == 0:
                yield group
                group, room = [], task.budget
    if group:
        yield group


def _next(
    logits_RV: Tensor, task: SamplingTask, rows: Sequence[LiveText], place: int, ended: Sequence[Ended]
) -> tuple[list[LiveText], list[int], list[int]]:
    """The rows of the next step, from which row each goes on, and the token it reads."""
    children: list[tuple[LiveText, int, int]] = []
    drawing = [number for number, row in enumerate(rows) if place >= len(task.prompts[row.prompt])]
    drawn = _draw(logits_RV, task, rows, drawing)
    for number, row in enumerate(rows):
        if number not in drawn:
            # It still reads its prompt: the next token is given, and nothing is drawn.
            children.append((row, number, task.prompts[row.prompt][place]))
            continue
        for child in _children(row, *drawn[number]):
            if (finished := _is_finished(task, child)) or len(child.drawn) >= task.limits[child.prompt]:
                _end(child, finished, ended[child.prompt])
            else:
                children.append((child, number, child.drawn[-1]))
    return [c[0] for c in children], [c[1] for c in children], [c[2] for c in children]


def _draw(
    logits_RV: Tensor, task: SamplingTask, rows: Sequence[LiveText], drawing: Sequence[int]
) -> dict[int, tuple[Integers, dict[int, float]]]:
    """For each drawing row the token of each of its samples, and the log-probs of those tokens."""
    if not drawing:
        return {}
    sizes = [len(rows[number].streams) for number in drawing]
    rows_S = np.repeat(drawing, sizes)
    depths_S = np.repeat([len(rows[number].drawn) for number in drawing], sizes)
    uniforms_S = uniforms(np.concatenate([rows[number].streams for number in drawing]), depths_S)
    of_rows, numbers = uploaded(logits_RV.device, rows_S, uniforms_S)
    drawn = fetched(logits_RV, of_rows, draw(logits_RV, task.settings, of_rows, numbers))
    tokens_S, log_probs_S = drawn[0], drawn[1].tolist()
    found = {}
    for number, start, size in zip(drawing, np.cumsum([0, *sizes]), sizes, strict=False):
        tokens = tokens_S[start : start + size]
        found[number] = tokens, dict(zip(tokens.tolist(), log_probs_S[start : start + size], strict=True))
    return found


def _children(row: LiveText, tokens_S: Integers, log_probs: dict[int, float]) -> Iterator[LiveText]:
    """The row with each distinct token after it, and the samples that drew that token."""
    for token, log_prob in sorted(log_probs.items()):
        yield replace(
            row,
            streams=row.streams[tokens_S == token],
            drawn=(*row.drawn, token),
            log_prob=row.log_prob + log_prob,
        )


def _is_finished(task: SamplingTask, row: LiveText) -> bool:
    token, watch = row.drawn[-1], task.watch
    if task.is_end[token] or watch is None:
        return bool(task.is_end[token])
    return bool(watch.has_newline[token]) and watch.closes(row.drawn)


def _end(row: LiveText, finished: bool, ended: Ended) -> None:
    count, *_ = ended.get((row.drawn, finished), (0,))  # samples beyond the budget may have drawn it before
    ended[row.drawn, finished] = count + len(row.streams), row.log_prob, 0


@dataclass(frozen=True)
class Marching:
    """Rows of one length, read by the model as its own `generate` would."""

    name: str
    reader: Callable[[PreTrainedModel], Reader]
    next: Sampler | None = None

    @property
    def is_checked(self) -> bool:
        """Whether something is left to go wrong."""
        return self.next is not None

    @property
    def fallback(self) -> Sampler:
        """The next slower way."""
        assert self.next is not None, "whole texts are right for any causal model"
        return self.next

    def hindrance(self, model: PreTrainedModel) -> str | None:
        """Nothing."""
        return None

    def complete(self, model: PreTrainedModel, task: SamplingTask) -> Drawn:
        """One group of rows after the other."""
        ended: list[Ended] = [{} for _ in task.prompts]
        computed = 0
        for rows in groups(task):
            reader = self.reader(model)
            march(reader, task, rows, ended)
            computed += reader.tokens_computed
        return ended, computed


WHOLE_TEXTS = Marching("whole_texts", WholeTexts)
OWN_CACHE = Marching("own_cache", OwnCache, WHOLE_TEXTS)
