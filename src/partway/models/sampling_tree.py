"""Sampling on the tree of distinct prefixes: exactly n independent samples at the cost of distinct ones."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from partway.models.loading import LanguageModel
from partway.models.settings import SamplingSettings


@dataclass(frozen=True, slots=True)
class TreePrompt:
    """Tokens to continue, how many samples of the continuation, and a key that names their randomness."""

    tokens: Sequence[int]
    count: int
    key: str


@dataclass(frozen=True, slots=True)
class TokenSample:
    """A distinct completion (without end-of-text), how often it was drawn, and its log-probability."""

    tokens: tuple[int, ...]
    count: int
    finished: bool
    log_prob: float


class TreeSampler:
    """Draws completions from one model."""

    def __init__(self, language_model: LanguageModel, *, row_budget: int = 512) -> None:
        self.model = language_model.model
        self.codec = language_model.codec
        self.row_budget = row_budget

    @torch.inference_mode()
    def sample(
        self, prompts: Sequence[TreePrompt], settings: SamplingSettings, seed: int
    ) -> list[list[TokenSample]]:
        """For every prompt its distinct completions; their counts sum to the prompt's count."""
        return [self._sample(prompt, settings, seed) for prompt in prompts]

    def _sample(self, prompt: TreePrompt, settings: SamplingSettings, seed: int) -> list[TokenSample]:
        digest = hashlib.blake2b(f"{seed}:{prompt.key}".encode(), digest_size=7).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest))
        done: list[TokenSample] = []
        live: dict[tuple[int, ...], tuple[int, float]] = {(): (prompt.count, 0.0)}
        for _ in range(settings.max_completion_length):
            rows = torch.tensor([[*prompt.tokens, *tokens] for tokens in live])
            log_probs_RV = self.model(rows).logits[:, -1].float().log_softmax(-1)
            children: dict[tuple[int, ...], tuple[int, float]] = {}
            for (tokens, (count, total)), log_probs_V in zip(live.items(), log_probs_RV, strict=True):
                probs_V = (log_probs_V / max(settings.temperature, 1e-6)).softmax(-1)
                drawn = torch.multinomial(probs_V, count, replacement=True, generator=generator)
                for token, times in Counter(drawn.tolist()).items():
                    log_prob = total + float(log_probs_V[token])
                    if token == self.codec.eos_id:
                        done.append(TokenSample(tokens, times, True, log_prob))
                    else:
                        children[(*tokens, token)] = (times, log_prob)
            live = children
            if not live:
                break
        return done + [TokenSample(tokens, count, False, total) for tokens, (count, total) in live.items()]
