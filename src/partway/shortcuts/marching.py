"""Sampling with rows of one length, which all read one token a step, on top of the model's own cache.

For models with a running state or mixed layers, whose rows can neither be padded nor shifted. Of prompts of
different lengths the shortest begins to draw while the others still read theirs, a token a step; so no row
is ever padded, and masks and positions are the model's own. Rows still split into distinct children only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import Cache, PreTrainedModel

from partway.learning.passes import logits_at, uploaded
from partway.learning.token_tree import Integers
from partway.sampling.drawing import to_draw_from
from partway.sampling.frontier import Children, Drawn, Frontier, SamplingTask, Streams
from partway.sampling.samplers import Sampler

KEPT = ("past_key_values", "cache_params", "state")  # what models call what they keep of a text


class Reader(Protocol):
    """A model that has read the same number of tokens of every row."""

    tokens_computed: int

    def read(self, ids_RT: Integers) -> Tensor:
        """The logits after the last token of each row, after it has read these tokens more."""

    def select(self, parents: Integers) -> None:
        """Let row i go on from the row `parents[i]`."""


class OwnCache:
    """Reads on from what the model itself keeps of a text, whatever that is."""

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        self.kept: dict[str, Any] = {}
        self.tokens_computed = 0

    def read(self, ids_RT: Integers) -> Tensor:
        """One forward over the new tokens."""
        output = _read(self.model, ids_RT, use_cache=True, **self.kept)
        self.kept = {name: kept for name in KEPT if (kept := getattr(output, name, None)) is not None}
        self.tokens_computed += ids_RT.size
        return to_draw_from(output.logits[0])

    def select(self, parents: Integers) -> None:
        """Beams are selected in the same way."""
        places = torch.from_numpy(parents).to(self.model.device)
        for name, kept in self.kept.items():
            if isinstance(kept, Cache):
                kept.reorder_cache(places)
            else:
                self.kept[name] = [part.index_select(0, places.to(part.device)) for part in kept]


class WholeTexts:
    """Reads everything again at every step: slow, and right for any causal model."""

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        self.texts: Integers | None = None
        self.tokens_computed = 0

    def read(self, ids_RT: Integers) -> Tensor:
        """One forward over all tokens so far."""
        self.texts = ids_RT if self.texts is None else np.concatenate([self.texts, ids_RT], 1)
        self.tokens_computed += self.texts.size
        return to_draw_from(_read(self.model, self.texts, use_cache=False).logits[0])

    def select(self, parents: Integers) -> None:
        """Rows of tokens."""
        self.texts = None if self.texts is None else self.texts[parents]


def _read(model: PreTrainedModel, ids_RT: Integers, **inputs: Any) -> Any:
    rows, length = ids_RT.shape
    last, ids = uploaded(model.device, np.arange(1, rows + 1) * length - 1, ids_RT)
    return logits_at(model, last, input_ids=ids, **inputs)


class InStep(Frontier):
    """A frontier of rows that have all read as many tokens; `depth` is below 0 while a row reads its prompt.

    Its cache is a `Reader`. All rows are admitted at once, with no more samples than there may be rows.
    """

    def admit(self, waiting: Sequence[tuple[int, Streams]]) -> None:
        """Give each prompt a row; what the shortest prompt has is read of all of them in the next forward."""
        super().admit(waiting)
        lengths_R = np.array([len(self.task.prompts[number]) for number in self.rows["prompt"]])
        self.rows["depth"] = lengths_R.min() - lengths_R

    def _may_be_packed(self, waiting: Sequence[tuple[int, Streams]]) -> bool:
        return True

    def _read_prompts(self) -> tuple[Tensor, Tensor, Tensor]:
        prompts = [self.task.prompts[number] for number in self.rows["prompt"]]
        shortest = min(map(len, prompts))
        return self._read_on(np.array([prompt[:shortest] for prompt in prompts]))

    def _forward(self) -> tuple[Tensor, Tensor, Tensor]:
        return self._read_on(self.rows["next"][:, None])

    def _read_on(self, ids_RT: Integers) -> tuple[Tensor, Tensor, Tensor]:
        """The logits after these tokens, and the `_numbers`; the next token of a prompt is certain."""
        logits_RV = self.cache.read(ids_RT)
        reading = np.flatnonzero(self.rows["depth"] < 0)
        if len(reading):
            given = [self.task.prompts[row["prompt"]][row["depth"]] for row in self.rows[reading]]
            logits_RV[reading] = -torch.inf
            logits_RV[reading, given] = 0.0
        read, bits = uploaded(self.device, *self._numbers())
        return logits_RV, read, bits

    def _is_finished(self, children: Children) -> NDArray[np.bool_]:
        """Only what was drawn can end."""
        finished_C = np.zeros(len(children.parents), bool)
        drawn = np.flatnonzero(self.rows["depth"][children.parents] >= 0)
        parents, ahead, tokens = children.parents[drawn], children.ahead[drawn], children.tokens[drawn]
        own = Children(parents, ahead, tokens, children.log_probs[drawn], children.of_samples)
        finished_C[drawn] = super()._is_finished(own)
        return finished_C

    def _append(self, ahead_R: Integers, tokens_R: Integers, log_probs_R: NDArray[np.float64]) -> None:
        """Add a token to every row; one of a prompt gives its place to the first that is drawn."""
        depths_R = self.rows["depth"].copy()
        self.rows["depth"] = depths_R.clip(0)
        super()._append(ahead_R, tokens_R, log_probs_R)
        self.rows["depth"] = depths_R + 1


def groups(task: SamplingTask) -> Iterator[list[tuple[int, Streams]]]:
    """Prompts of like length together, with no more samples than the budget has rows."""
    group: list[tuple[int, Streams]] = []
    room = task.budget
    for prompt in sorted(range(len(task.prompts)), key=lambda number: len(task.prompts[number])):
        waiting = task.streams[prompt]
        while len(waiting):
            group.append((prompt, waiting[:room]))
            waiting, room = waiting[room:], room - len(group[-1][1])
            if room == 0:
                yield group
                group, room = [], task.budget
    if group:
        yield group


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

    def complete(self, model: PreTrainedModel, task: SamplingTask) -> Iterator[Drawn]:
        """One group of rows after the other."""
        frontier = InStep(model, task, None)
        for waiting in groups(task):
            frontier.cache = self.reader(model)
            frontier.admit(waiting)
            while len(frontier.rows):
                frontier.advance()
            frontier.tokens_computed += frontier.cache.tokens_computed
            yield from frontier.finished()
        yield from frontier.finished()  # of which no sample is wanted


WHOLE_TEXTS = Marching("whole_texts", WholeTexts)
OWN_CACHE = Marching("own_cache", OwnCache, WHOLE_TEXTS)
