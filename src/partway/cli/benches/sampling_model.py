"""The model of `partway bench sample`: the tiny one, trained until as few samples differ as in the paper."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from partway.models.loading import LanguageModel
from partway.models.sampling_tree import TreePrompt, TreeSampler
from partway.models.settings import SamplingSettings
from partway.models.text import Codec
from partway.models.tiny import build_tiny_model
from partway.problem import Problem

BATCH = 16
LEARNING_RATE = 2e-3
WARM_UP = 20
STEPS_BETWEEN_LOOKS = 20
MOST_STEPS = 2000
IGNORED = -100


def train_to_share(
    training: Sequence[Problem],
    looked_at: Sequence[Problem],
    share: float,
    samples: int,
    settings: SamplingSettings,
    seed: int,
    report: Callable[[str], None],
) -> LanguageModel:
    """The tiny model, trained on references until the share of distinct samples has fallen to `share`."""
    language_model = build_tiny_model(training, seed=seed)
    model, rng = language_model.model, random.Random(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / WARM_UP))
    for step in range(1, MOST_STEPS + 1):
        ids, labels = _batch(language_model.codec, rng.sample(list(training), BATCH))
        loss = cross_entropy(
            model(ids).logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORED
        )
        torch.autograd.backward(loss)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % STEPS_BETWEEN_LOOKS == 0:
            distinct = unique_share(language_model, looked_at, samples, settings)
            report(f"training, step {step}: loss {loss.item():.3f}, {distinct:.0%} of samples distinct")
            if distinct <= share:
                break
    return language_model


def unique_share(
    language_model: LanguageModel, problems: Sequence[Problem], samples: int, settings: SamplingSettings
) -> float:
    """The share of distinct solutions among `samples` of each problem."""
    prompts = [TreePrompt(language_model.codec.prompt(p.question), samples, p.id) for p in problems]
    results = TreeSampler(language_model, answer_variable=None).sample(prompts, settings, seed=0)
    return sum(map(len, results)) / (samples * len(problems))


def _batch(codec: Codec, problems: Sequence[Problem]) -> tuple[Tensor, Tensor]:
    """Right-padded rows; only the tokens of the references are learned."""
    pairs = [
        (codec.prompt(problem.question), codec.target(problem.reference, finished=True))
        for problem in problems
        if problem.reference is not None
    ]
    width = max(len(prompt) + len(target) for prompt, target in pairs)
    ids = torch.full((len(pairs), width), codec.pad_id)
    labels = torch.full_like(ids, IGNORED)
    for row, (prompt, target) in enumerate(pairs):
        end = len(prompt) + len(target)
        ids[row, :end] = torch.tensor(prompt + target)
        labels[row, len(prompt) : end] = torch.tensor(target)
    return ids, labels
