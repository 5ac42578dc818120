"""Chance: what a sampler without a model solves, the floor of every table.

It takes a random reference of the training problems and puts what the question says, its numbers, in random
order into the places where the reference has those of its own question. At a large k that solves more than
one expects: a model is worth looking at where it is above this line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from partway.errors import ProblemError
from partway.language import Language
from partway.models.engine import Engine, Request, SamplingSettings
from partway.problem import Problem
from partway.sample import Sample


class Chance(Engine):
    """An engine that draws references of other problems, filled with what the question says."""

    def __init__(self, problems: Sequence[Problem], language: Language) -> None:
        self.language = language
        self.referenced = [problem for problem in problems if problem.reference is not None]
        if not self.referenced:
            raise ProblemError("chance needs problems with a reference to take programs from; none has one")
        if language.refilled(self.referenced[0], "", Random(0)) is None:
            name = language.instruction.name
            raise ProblemError(f"chance is not known for {name}: it does not say how to fill a reference")

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Sample]]:
        """Programs drawn by the seed and the problem; the temperature means nothing here."""
        return [self._samples(request, seed) for request in requests]

    def _samples(self, request: Request, seed: int) -> list[Sample]:
        rng = Random(f"{seed}/{request.problem.id}")
        texts = Counter(self._drawn(request.problem.question, rng) for _ in range(request.count))
        return [request.sample(f"{text}\n", count) for text, count in texts.items()]

    def _drawn(self, question: str, rng: Random) -> str:
        text = self.language.refilled(rng.choice(self.referenced), question, rng)
        assert text is not None, "a language fills all references or none"
        return text
