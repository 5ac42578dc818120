"""The default engine: the sampling tree in this process."""

from __future__ import annotations

from collections.abc import Sequence

from partway.models.engine import Draw, Request
from partway.models.loading import LanguageModel
from partway.models.sampling_tree import TokenSample, TreePrompt, TreeSampler
from partway.models.settings import SamplingSettings
from partway.solution import ANSWER_VARIABLE


class LocalEngine:
    """Completes beginnings of solutions with a model in this process."""

    def __init__(
        self,
        language_model: LanguageModel,
        *,
        row_budget: int | None = None,
        answer_variable: str | None = ANSWER_VARIABLE,
    ) -> None:
        self.codec = language_model.codec
        self.sampler = TreeSampler(language_model, row_budget=row_budget, answer_variable=answer_variable)

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Draw]]:
        """For every request its distinct draws; randomness belongs to a request's problem, not its place."""
        prompts = [self._prompt(request) for request in requests]
        samples = self.sampler.sample(prompts, settings, seed)
        return [
            [self._draw(request, sample) for sample in of_request]
            for request, of_request in zip(requests, samples, strict=True)
        ]

    def _prompt(self, request: Request) -> TreePrompt:
        tokens = self.codec.prompt(request.problem.question) + self.codec.steps(request.prefix)
        return TreePrompt(tokens, request.count, request.problem.id)

    def _draw(self, request: Request, sample: TokenSample) -> Draw:
        completion = self.codec.decode(sample.tokens)
        return Draw.of(
            request.prefix, completion, sample.count, sample.finished, sample.log_prob, len(sample.tokens)
        )
