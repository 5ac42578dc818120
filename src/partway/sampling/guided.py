"""Algorithm 2, SampleSolutions: guided sampling, which continues beginnings that are known to be right."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from partway.buffer import SolutionBuffer
from partway.models.engine import Engine, SamplingSettings
from partway.problem import Problem
from partway.sample import Request, Sample
from partway.solution import EMPTY, Solution

MOST_DRAFTS = 16  # of either kind; older solutions add little to these


def sample_solutions(
    engine: Engine,
    problems: Sequence[Problem],
    buffers: Mapping[str, SolutionBuffer],
    guide: Guide,
    settings: SamplingSettings,
    seed: int,
) -> list[tuple[Problem, Sample]]:
    """Draw a prefix from each problem's buffer, and from the model solutions that begin with it."""
    requests = guide.requests(problems, buffers, seed)
    answers = engine.complete(requests, settings, seed)
    return [(p, sample) for p, samples in zip(problems, answers, strict=True) for sample in samples]


@dataclass(frozen=True)
class Guide:
    """What to ask for: `num_generations` completions per problem, of one prefix drawn from its buffer.

    `counts` has other numbers, by problem id. If not `is_guided`, all completions begin from nothing.
    `has_room` says whether the model could read a prefix and write on.
    """

    num_generations: int = 1
    is_guided: bool = True
    has_room: Callable[[Problem, Solution], bool] = lambda problem, prefix: True
    counts: Mapping[str, int] = field(default_factory=dict)

    def requests(
        self, problems: Sequence[Problem], buffers: Mapping[str, SolutionBuffer], seed: int
    ) -> list[Request]:
        """A request per problem; it depends on the seed, the problem and its buffer, on no other problem."""
        return [self._request(problem, buffers[problem.id], seed) for problem in problems]

    def _request(self, problem: Problem, buffer: SolutionBuffer, seed: int) -> Request:
        count = self.counts.get(problem.id, self.num_generations)
        prefix = EMPTY
        if self.is_guided:
            # Uniform over B without the fully-correct solutions; of FCS only, nothing but y0 is left.
            rng = random.Random(f"{seed}/{problem.id}")
            prefix = buffer.draw_prefix(rng, partial(self.has_room, problem))
        return Request(problem, prefix, count, drafts_of(buffer))


def drafts_of(buffer: SolutionBuffer) -> tuple[Solution, ...]:
    """The solutions found last: samples will probably resemble them."""
    return buffer.fully_correct[-MOST_DRAFTS:] + buffer.partially_correct[-MOST_DRAFTS:]
