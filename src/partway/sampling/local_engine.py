"""The default engine, a model in this process: n independent samples at the cost of the distinct ones.

Samples are drawn on the tree of their distinct prefixes. A row is a distinct live prefix and holds the
samples that have drawn it. One forward pass extends all rows by a token: every sample draws its next token
from its row's distribution, and a row becomes its distinct children. docs/performance.md says why this is
exact and what is reproducible.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from partway import registry
from partway.errors import ModelError
from partway.language import PYTHON, Language
from partway.learning.layouts import Layout, Tree, TreeRows, hindrance
from partway.learning.passes import evaluating
from partway.models.engine import Engine, SamplingSettings
from partway.models.loading import LanguageModel, as_list
from partway.models.text import AnswerWatch
from partway.sample import Request, Sample
from partway.sampling.cache import RowCache
from partway.sampling.drawing import streams
from partway.sampling.frontier import Drawn, Ended, Frontier, SamplingTask, Streams
from partway.sampling.samplers import Sampler, checked_sampler

GIB = 1 << 30  # bytes of keys, values and logits on a CPU, if nothing else is said
MAX_DEFAULT_ROWS = 1024


class LocalEngine(Engine):
    """Completes beginnings of solutions with one model, holding at most `row_budget` rows at a time.

    Without a budget there are as many as fit in `memory` GiB, by default 1, on a GPU a third of what is free,
    since learning needs the rest. A completion ends at an end-of-text token, at the line that ends a solution
    of `language` (None: none does), or at a length.

    With a `layout` that is right for the model, tokens that probably follow by the requests' drafts are read
    ahead. What is drawn stays the same but for rounding.
    """

    works_ahead = False  # the model that learns draws

    def __init__(
        self,
        language_model: LanguageModel,
        *,
        row_budget: int | None = None,
        memory: float | None = None,
        language: Language | None = PYTHON,
        layout: Layout | None = None,
    ) -> None:
        self.model, self.codec = language_model.model, language_model.codec
        self.context_length = language_model.context_length
        self._question = lru_cache(maxsize=1 << 16)(self.codec.prompt)  # a run asks the same ones again
        self._language = (language or PYTHON).fitted(self.context_length, self.codec.prompt)
        self.row_budget = row_budget
        self.bytes = None if memory is None else int(memory * GIB)
        # What lets a tree be scored in one row lets a row be read with guesses: positions and masks count.
        self.longest = layout.longest if isinstance(layout, Tree | TreeRows) else 0
        self.longest_packed = layout.longest if isinstance(layout, Tree) else 0
        reading_ahead = registry.parts("samplers").get("guesses") if self.longest else None
        self._reading_ahead = None if reading_ahead is None else reading_ahead.load()
        self.check()
        vocabulary = self.model.config.get_text_config(decoder=True).vocab_size
        self.is_end = np.zeros(vocabulary, bool)
        self.is_end[end_ids(language_model)] = True
        self.watch = None if language is None else AnswerWatch(self.codec, vocabulary, language)
        # Told how many samples have ended but are not handed over.
        self.on_drawn: Callable[[int], None] | None = None
        self.tokens_computed = 0  # by all calls so far, prompts included

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Sample]]:
        """For every request its distinct samples, the most frequent first."""
        found = dict(self.stream(requests, settings, seed, at_once=True))
        return [found[index] for index in range(len(requests))]

    def stream(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int, *, at_once: bool = False
    ) -> Iterator[tuple[int, list[Sample]]]:
        """Pairs of a request's index and its samples, once they have ended; others take their rows.

        Randomness belongs to a request's problem, not to its place among the requests.
        """
        prompts = [self._prompt(request) for request in requests]
        limits = [min(settings.max_completion_length, self.context_length - len(p)) for p in prompts]
        needed = sum(request.count for request in requests)
        handed_over = 0

        def tell(drawn: int) -> None:
            if self.on_drawn is not None:
                self.on_drawn(drawn - handed_over)

        rows, of_prompts = self._budgets(prompts, limits)
        task = SamplingTask(
            prompts,
            [streams(seed, request.problem.id, request.count) for request in requests],
            limits,
            settings,
            budget=min(rows, max(needed, 1)),
            is_end=self.is_end,
            watch=self.watch,
            longest_packed=self.longest_packed,
            prompt_budget=of_prompts,
            on_drawn=tell,
        )
        finished = self._sampler_for(requests).complete(self.model, task)
        while True:
            with evaluating(self.model), torch.no_grad():  # not while the caller works with what it has got
                drawn = next(finished, None)
            if drawn is None:
                return
            index, ended, tokens = drawn
            self.tokens_computed += tokens
            handed_over += 0 if at_once else requests[index].count
            yield index, self._samples(requests[index], ended)

    def update(self, weights: PreTrainedModel, version: int) -> None:
        """Draw with this model from now on; what was learned in place needs no telling."""
        if weights is not self.model:
            self.model = weights
            self.check()

    def check(self) -> None:
        """Find the sampler that is right for the model; again, if it was given other weights."""
        with evaluating(self.model):
            fastest, pad_id = fastest_sampler(self.model), self.codec.pad_id
            self.sampler: Sampler = checked_sampler(self.model, fastest, pad_id=pad_id)

    def _prompt(self, request: Request) -> list[int]:
        tokens = self._question(self._language.question(request.problem)) + self.codec.steps(request.prefix)
        if len(tokens) >= self.context_length:
            raise ModelError(
                f"{request.problem.id}: a prompt of {len(tokens)} tokens leaves no room in the context of"
                f" {self.context_length} tokens; shorten the question or use a model with a longer context"
            )
        return tokens

    def _sampler_for(self, requests: Sequence[Request]) -> Sampler:
        """The sampler that is right for the model; a folder has one that reads ahead what drafts say.

        That gives 2.8 times the samples per second at one sample a problem, and 1.3 times at a hundred
        (`python -m benchmarks sample`).
        """
        if self._reading_ahead is None:
            return self.sampler
        sampler: Sampler = self._reading_ahead(self.sampler, requests, self.codec, self.longest)
        return sampler

    def _samples(self, request: Request, ended: Ended) -> list[Sample]:
        """A sample for each distinct completion, the most frequent first."""
        ordered = sorted(
            ended.items(), key=lambda item: (-item[1][0], self._written(item[0][0]), item[0][1], item[0][0])
        )
        return [
            request.sample(
                self.codec.solution_text(self._written(tokens)),
                count,
                finished=finished,
                tokens=tokens,
                log_prob=log_prob,
                drafted=drafted,
            )
            for (tokens, finished), (count, log_prob, drafted) in ordered
        ]

    def _written(self, tokens: tuple[int, ...]) -> tuple[int, ...]:
        """The tokens without the one that ends them."""
        return tokens[:-1] if self.is_end[tokens[-1]] else tokens

    def _budgets(self, prompts: Sequence[Sequence[int]], limits: Sequence[int]) -> tuple[int, int | None]:
        """How many rows to hold, and of how many prompts: as many as memory allows, unless it is said.

        Where prompts are shared, half of it is for them and half for what the rows draw.
        """
        if self.row_budget:
            return self.row_budget, None
        if self.bytes is None:  # asked once, so that a run's passes stay as large as the first
            device = self.model.device
            self.bytes = GIB if device.type != "cuda" else torch.cuda.mem_get_info(device)[0] // 3
        each, lengths = token_bytes(self.model), [len(prompt) for prompt in prompts]
        # Drawing makes copies of the logits: scaled, as probabilities, summed up.
        logits = 4 * len(self.is_end) * torch.float32.itemsize
        if getattr(self.sampler, "shares_prompts", False):
            rows = _within(self.bytes // 2, each * max(limits, default=1) + logits)
            return rows, _within(self.bytes // 2, each * max(lengths, default=1))
        whole = (length + limit for length, limit in zip(lengths, limits, strict=True))
        return _within(self.bytes, each * max(whole, default=1) + logits), None


def _within(total: int, each: int) -> int:
    return min(max(total // each, 1), MAX_DEFAULT_ROWS)


def end_ids(language_model: LanguageModel) -> list[int]:
    """The codec's end-of-text token and those the model's own generation settings stop at."""
    settings = getattr(language_model.model, "generation_config", None)
    return sorted({language_model.codec.eos_id, *as_list(getattr(settings, "eos_token_id", None))})


def fastest_sampler(model: PreTrainedModel) -> Sampler:
    """The sampling tree, with prompts kept once where a folder adds that and the model gains from it."""
    sharing = registry.parts("samplers").get("shared_prompts")
    return (sharing and sharing.load()(model)) or TreeSampler()


def token_bytes(model: PreTrainedModel) -> int:
    """Keys and values of a token, as if every layer kept them."""
    config = model.config.get_text_config(decoder=True)
    all_heads = getattr(config, "num_attention_heads", None) or 1
    heads = getattr(config, "num_key_value_heads", None) or all_heads
    head_size = getattr(config, "head_dim", None) or config.hidden_size // all_heads
    return int(2 * config.num_hidden_layers * heads * head_size * model.dtype.itemsize)


Waiting = tuple[int, Streams]  # a prompt's number, with the streams of its samples that have no row


@dataclass(frozen=True)
class TreeSampler:
    """The sampling tree: rows of all lengths together; `cache` keeps their keys and values.

    If it `shares_prompts`, those of a prompt are kept once for all of its rows.
    """

    cache: Callable[[int], Any] = RowCache
    name = "tree"
    is_checked = True

    @property
    def shares_prompts(self) -> bool:
        """Whether rows are not whole."""
        return self.cache is not RowCache

    @property
    def fallback(self) -> Sampler:
        """Whole rows, then rows in step."""
        if self.shares_prompts:
            return TreeSampler()
        in_step: Sampler = registry.part("samplers", "own_cache")
        return in_step

    def hindrance(self, model: PreTrainedModel) -> str | None:
        """A running state cannot be split."""
        return hindrance(model)

    def complete(self, model: PreTrainedModel, task: SamplingTask) -> Iterator[Drawn]:
        """Rows are admitted as others end."""
        return complete_on(Frontier(model, task, self.cache(task.budget)), task)


def complete_on(frontier: Frontier, task: SamplingTask) -> Iterator[Drawn]:
    """Grow a tree until every sample that the task asks for has ended."""
    admission = Admission(task)
    yield from frontier.finished()  # of which no sample is wanted
    while admission.waiting or len(frontier.rows):
        frontier.admit(admission.admissible(frontier))
        admission.return_evicted(frontier.advance())
        if task.on_drawn is not None:
            task.on_drawn(frontier.drawn)
        yield from frontier.finished()


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
