"""The model of `benchmarks sample`: the demo's, fine-tuned until as few samples differ as in the paper."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmarks.batching import IGNORED, right_padded
from partway.models.engine import SamplingSettings
from partway.models.loading import PRETRAINED_TINY, LanguageModel, load_model
from partway.models.text import Codec
from partway.problem import Problem
from partway.sample import Request
from partway.sampling.local_engine import LocalEngine
from partway.solution import EMPTY

BATCH = 16
LEARNING_RATE = 1e-3
STEPS_BETWEEN_LOOKS = 10
MOST_STEPS = 400
LOOKED_AT = 8  # problems


def fine_tuned_to_share(
    problems: Sequence[Problem],
    share: float,
    samples: int,
    settings: SamplingSettings,
    seed: int,
    report: Callable[[str], None],
    name: str = PRETRAINED_TINY,
    learning_rate: float = LEARNING_RATE,
) -> LanguageModel:
    """The model, fine-tuned on references until the share of distinct samples has fallen to `share`."""
    language_model = load_model(name)
    model, rng = language_model.model, random.Random(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    for step in range(1, MOST_STEPS + 1):
        rows = _batch(language_model.codec, rng.sample(list(problems), min(BATCH, len(problems))))
        logits = model(rows["input_ids"].to(model.device)).logits
        labels = rows["labels"]
        loss = cross_entropy(
            logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten().to(model.device), ignore_index=IGNORED
        )
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if step % STEPS_BETWEEN_LOOKS == 0:
            distinct = unique_share(language_model, problems[:LOOKED_AT], samples, settings)
            report(f"fine-tuning, step {step}: loss {loss.item():.3f}, {distinct:.0%} of samples distinct")
            if distinct <= share:
                break
    return language_model


def unique_share(
    language_model: LanguageModel, problems: Sequence[Problem], samples: int, settings: SamplingSettings
) -> float:
    """The share of distinct solutions among `samples` of each problem."""
    requests = [Request(problem, EMPTY, samples) for problem in problems]
    results = LocalEngine(language_model, language=None).complete(requests, settings, seed=0)
    return sum(map(len, results)) / (samples * len(problems))


def _batch(codec: Codec, problems: Sequence[Problem]) -> dict[str, Tensor]:
    """Rows of which the references are learned."""
    pairs = [
        (codec.prompt(problem.question), codec.target(problem.reference, finished=True))
        for problem in problems
        if problem.reference is not None
    ]
    return right_padded(pairs, codec.pad_id)
