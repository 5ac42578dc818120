"""The contenders of `python -m benchmarks sample`: the sampling tree, `generate` and `generate_batch`.

All draw from the same model and prompts, with the same temperature, length limit and end-of-text token,
and none ends a solution at its answer. Each returns how many tokens its samples have, end-of-text included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from transformers import ContinuousBatchingConfig, GenerationConfig

from benchmarks.batching import batches_by_length, generation_config, left_padded
from partway.learning.layouts import Tree
from partway.models.engine import SamplingSettings
from partway.models.loading import LanguageModel
from partway.problem import Problem
from partway.sample import Request
from partway.sampling.local_engine import LocalEngine
from partway.solution import EMPTY

PAGE = 32  # tokens per page of generate_batch's cache


@dataclass(frozen=True)
class Task:
    """`samples` solutions of every problem."""

    language_model: LanguageModel
    problems: Sequence[Problem]
    samples: int
    settings: SamplingSettings

    @property
    def prompts(self) -> list[list[int]]:
        """What the model reads of each problem."""
        return [self.language_model.codec.prompt(problem.question) for problem in self.problems]

    @cached_property
    def tree(self) -> LocalEngine:
        """Our engine; as it starts it checks itself on the model, which a run does once."""
        return LocalEngine(self.language_model, language=None)

    @cached_property
    def drafting_tree(self) -> LocalEngine:
        """The same, which reads drafts ahead."""
        return LocalEngine(self.language_model, language=None, layout=Tree())

    @property
    def generation_config(self) -> GenerationConfig:
        """The settings as transformers spells them."""
        return generation_config(self.settings, self.language_model.codec, self.samples)


@dataclass(frozen=True)
class Drawn:
    """What a contender drew; computed, unique and drafted are known of the tree only."""

    tokens_returned: int
    tokens_computed: int = 0
    unique_share: float = 0.0
    drafted_share: float = 0.0


def draw_on_tree(task: Task, seed: int) -> Drawn:
    """Our own: all prompts at once, as many rows as the default budget allows."""
    return _drawn_on_tree(task, seed, task.tree, drafts=False)


def draw_with_drafts(task: Task, seed: int) -> Drawn:
    """The same with each problem's reference as its draft, which is what training begins with."""
    return _drawn_on_tree(task, seed, task.drafting_tree, drafts=True)


def _drawn_on_tree(task: Task, seed: int, engine: LocalEngine, *, drafts: bool) -> Drawn:
    kept = [(p.reference,) if drafts and p.reference is not None else () for p in task.problems]
    requests = [Request(p, EMPTY, task.samples, k) for p, k in zip(task.problems, kept, strict=True)]
    before = engine.tokens_computed
    answers = engine.complete(requests, task.settings, seed)
    draws = [draw for of_request in answers for draw in of_request]
    returned = sum(draw.count * len(draw.tokens) for draw in draws)
    return Drawn(
        returned,
        engine.tokens_computed - before,
        len(draws) / (task.samples * len(requests)),
        sum(draw.count * draw.drafted for draw in draws) / max(1, returned),
    )


def draw_with_generate(task: Task, seed: int, rows: int) -> Drawn:
    """`generate(num_return_sequences=n)` on left-padded batches of about `rows` rows, sorted by length."""
    torch.manual_seed(seed)
    size = max(1, rows // task.samples)  # prompts: each becomes as many rows as it has samples
    batches = batches_by_length([len(prompt) for prompt in task.prompts], size)
    return Drawn(sum(_generated(task, [task.prompts[place] for place in batch]) for batch in batches))


def _generated(task: Task, prompts: Sequence[Sequence[int]]) -> int:
    codec, model = task.language_model.codec, task.language_model.model
    rows = {key: value.to(model.device) for key, value in left_padded(prompts, codec.pad_id).items()}
    output: Tensor = model.generate(**rows, generation_config=task.generation_config)
    completions = output[:, rows["input_ids"].shape[1] :]
    is_end = completions == codec.eos_id
    lengths = torch.where(is_end.any(1), is_end.int().argmax(1) + 1, completions.shape[1])
    return int(lengths.sum())


def draw_with_generate_batch(task: Task, seed: int, rows: int) -> Drawn:
    """`generate_batch`, continuous batching, with a cache that holds about `rows` requests at a time."""
    longest = max(map(len, task.prompts)) + task.settings.max_completion_length
    config = ContinuousBatchingConfig(
        page_size=PAGE,
        num_blocks=rows * -(-longest // PAGE),
        max_batch_tokens=max(rows, longest),
        max_requests_per_batch=rows,
        seed=seed,
    )
    outputs = task.language_model.model.generate_batch(
        [list(prompt) for prompt in task.prompts],
        generation_config=task.generation_config,
        continuous_batching_config=config,
        progress_bar=False,
    )
    # Requests that it gave up on would make it look faster than it is.
    if len(outputs) < task.samples * len(task.prompts):
        raise RuntimeError(f"returned {len(outputs)} of {task.samples * len(task.prompts)} samples")
    return Drawn(sum(len(output.generated_tokens) for output in outputs.values()))
