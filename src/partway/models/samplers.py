"""How samples are drawn from a model in this process: three ways to one distribution, the fastest last."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from transformers import PreTrainedModel

from partway.models.frontier import Ended, Frontier, Streams
from partway.models.marching import OwnCache, Reader, WholeTexts, groups, march
from partway.models.sampling_task import SamplingTask

Drawn = tuple[list[Ended], int]  # what has ended of each prompt, and how many tokens the model read
Waiting = tuple[int, Streams]  # a prompt's number, with the streams of its samples that have no row


class Sampler(Protocol):
    """A way of drawing samples."""

    @property
    def name(self) -> str:
        """What it is called in messages and reports."""

    @property
    def fallback(self) -> Sampler | None:
        """What to try for a model for which this is wrong; None: nothing is left to go wrong."""

    def complete(self, model: PreTrainedModel, task: SamplingTask) -> Drawn:
        """Every sample that the task asks for; the model is in evaluation mode, without gradients."""


@dataclass(frozen=True)
class Marching:
    """Rows of one length, read by the model as its own `generate` would."""

    name: str
    reader: Callable[[PreTrainedModel], Reader]
    fallback: Sampler | None = None

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


@dataclass(frozen=True)
class TreeSampler:
    """The sampling tree: rows of all lengths together, keys and values in a cache of ours.

    If it `shares_prompts`, those of a prompt are kept once for all of its rows.
    """

    shares_prompts: bool = False
    name = "tree"

    @property
    def fallback(self) -> Sampler:
        """Whole rows, then rows in step."""
        return TreeSampler() if self.shares_prompts else OWN_CACHE

    def complete(self, model: PreTrainedModel, task: SamplingTask) -> Drawn:
        """Rows are admitted as others end."""
        frontier = Frontier(model, task, shares_prompts=self.shares_prompts)
        admission = Admission(task)
        while admission.waiting or len(frontier.rows):
            frontier.admit(admission.admissible(frontier))
            admission.return_evicted(frontier.advance())
        return frontier.ended, frontier.tokens_computed


class Admission:
    """Admits as many prompts as will probably fit into the budget of rows, the longest prompts first.

    What waits are all samples at first, and again those whose rows had to make room. A prompt needs about one
    row per distinct completion. Their share is estimated from those that ended, and from the paper's regime
    as if that were a hundred samples more.
    """

    def __init__(self, task: SamplingTask) -> None:
        self.budget = task.budget
        self.prompt_budget = task.budget if task.prompt_budget is None else task.prompt_budget
        self.waiting = deque(sorted(enumerate(task.streams), key=lambda one: -len(task.prompts[one[0]])))

    def admissible(self, frontier: Frontier) -> list[Waiting]:
        """What to admit now; at least one if there are no rows."""
        if not self.waiting:
            return []
        # The paper's regime: of 100 samples of a fine-tuned model about 30 are distinct.
        share = (30 + frontier.distinct) / (100 + frontier.drawn)
        room = self.budget - frontier.expected_rows(share)
        admitted: list[Waiting] = []
        if len(frontier.rows) and room < self.budget / 4:  # a few large forwards beat many small ones
            return admitted
        prompts = self.prompt_budget - frontier.live_prompts
        while self.waiting and (len(admitted) < prompts or not (admitted or len(frontier.rows))):
            need = max(1, math.ceil(share * len(self.waiting[0][1])))
            if need > room and (admitted or len(frontier.rows)):
                break
            admitted.append(self.waiting.popleft())
            room -= need
        return admitted

    def return_evicted(self, evicted: Iterable[Waiting]) -> None:
        """Let evicted samples start again; as their numbers are their own, they will draw the same tokens."""
        self.waiting.extendleft(evicted)
