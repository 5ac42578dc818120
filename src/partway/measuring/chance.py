"""Chance: what a sampler without a model solves, the floor of every table.

It takes a random reference of the training problems and puts what the question says, its numbers (of SQL, its
values), in random order into the places where the reference has those of its own question. At a large k that
solves more than one expects: a model is worth looking at where it is above this line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

from partway import registry
from partway.errors import ProblemError
from partway.language import Language, PythonLanguage
from partway.models.engine import Engine, SamplingSettings
from partway.problem import Problem
from partway.sample import Request, Sample
from passatk import Estimate

_NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)", re.ASCII)
_LITERAL = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", re.ASCII)  # as unparsed code spells most numbers


def best_above(found: Mapping[int, Estimate], chance: Estimate | None) -> int | None:
    """Which number is the best, if its interval is above chance; else None, also where chance is not known.

    >>> half, most = Estimate(0.5, 0.4, 0.6), Estimate(0.6, 0.45, 0.7)
    >>> best_above({0: half, 1: most}, Estimate(0.3, 0.2, 0.4)), best_above({0: half, 1: most}, half)
    (1, None)
    """
    best = max(found, key=lambda one: found[one].value, default=None)
    is_above = best is not None and chance is not None and found[best].low > chance.value
    return best if is_above else None


class Chance(Engine):
    """An engine that draws references of other problems, filled with what the question says."""

    def __init__(self, problems: Sequence[Problem], language: Language) -> None:
        self.referenced = [problem for problem in problems if problem.reference is not None]
        if not self.referenced:
            raise ProblemError("chance needs problems with a reference to take programs from; none has one")
        name, self.filled = language.instruction.name, with_numbers_of
        if not isinstance(language, PythonLanguage):
            added = registry.parts("engines").get(f"chance {name.lower()}")
            if added is None:
                raise ProblemError(f"chance is not known for {name}: no part says how to fill its references")
            self.filled = added.load()(self.referenced)

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
        return self.filled(question, rng.choice(self.referenced), rng)


def with_numbers_of(question: str, problem: Problem, rng: Random) -> str:
    """The reference of a problem, with the numbers of `question` where those of its own question stand.

    Each is there once, if there are enough.

    >>> wheels = Problem("w", "10 ml for each of 2 wheels?", 20, "n0 = 10\\nn1 = 2\\nanswer = n0 * n1 * 1")
    >>> with_numbers_of("3 boxes of 4 pens?", wheels, Random(0))
    'n0 = 4\\nn1 = 3\\nanswer = n0 * n1 * 1'
    """
    assert problem.reference is not None, "only a reference has places to fill"
    own = {float(number) for number in _numbers(problem.question)}
    text = problem.reference.text
    places = list(dict.fromkeys(n for n in map(float, _LITERAL.findall(text)) if n in own))
    given = _numbers(question)
    if not given:
        return text
    enough = len(places) <= len(given)
    chosen = rng.sample(given, len(places)) if enough else [rng.choice(given) for _ in places]
    into = dict(zip(places, chosen, strict=True))
    return _LITERAL.sub(lambda found: into.get(float(found[0]), found[0]), text)


def _numbers(question: str) -> list[str]:
    return [number.replace(",", "") for number in _NUMBER.findall(question)]
