"""How samples are drawn from a model in this process: three ways to one distribution, the fastest first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from transformers import PreTrainedModel

from partway.models.admission import Admission
from partway.models.frontier import Ended, Frontier
from partway.models.marching import OwnCache, Reader, WholeTexts, groups, march
from partway.models.sampling_task import SamplingTask

Drawn = tuple[list[Ended], int]  # what has ended of each prompt, and how many tokens the model read


class Sampler(Protocol):
    """A way of drawing samples."""

    @property
    def name(self) -> str:
        """What it is called in messages and reports."""
        ...

    @property
    def fallback(self) -> Sampler | None:
        """What to try for a model for which this is wrong; None: nothing is left to go wrong."""
        ...

    def complete(self, model: PreTrainedModel, task: SamplingTask) -> Drawn:
        """Every sample that the task asks for; the model is in evaluation mode, without gradients."""
        ...


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
        frontier = Frontier(
            model,
            task.settings,
            task.prompts,
            task.limits,
            budget=task.budget,
            is_end=task.is_end,
            watch=task.watch,
            guesser=task.guesser,
            longest_packed=task.longest_packed,
            shares_prompts=self.shares_prompts,
        )
        admission = Admission(task.prompts, enumerate(task.streams), task.budget, task.prompt_budget)
        while admission.waiting or len(frontier.rows):
            frontier.admit(admission.admissible(frontier))
            admission.return_evicted(frontier.advance())
        return frontier.ended, frontier.tokens_computed
