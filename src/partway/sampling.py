"""Guided sampling: solutions that continue what the buffer already knows to be right (Algorithm 2)."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from partway.buffer import SolutionBuffer
from partway.models.engine import Draw as Draw
from partway.models.engine import Engine as Engine
from partway.models.engine import Request as Request
from partway.models.settings import SamplingSettings
from partway.problem import Problem
from partway.solution import EMPTY, Solution

Drawn = list[tuple[Request, list[Draw]]]

MOST_DRAFTS = 16  # of either kind; older solutions tell little that these do not


def sample_solutions(
    engine: Engine,
    problems: Sequence[Problem],
    buffers: Mapping[str, SolutionBuffer],
    settings: SamplingSettings,
    num_generations: int,
    seed: int,
    has_room: Callable[[Problem, Solution], bool] = lambda problem, prefix: True,
    num_generations_unsolved: int | None = None,
    *,
    guided: bool = True,
) -> Drawn:
    """`num_generations` solutions per problem, each from one prefix drawn from the problem's buffer."""
    requests = guided_requests(
        problems, buffers, num_generations, seed, has_room, num_generations_unsolved, guided=guided
    )
    return list(zip(requests, engine.complete(requests, settings, seed), strict=True))


def guided_requests(
    problems: Sequence[Problem],
    buffers: Mapping[str, SolutionBuffer],
    num_generations: int,
    seed: int,
    has_room: Callable[[Problem, Solution], bool] = lambda problem, prefix: True,
    num_generations_unsolved: int | None = None,
    *,
    guided: bool = True,
) -> list[Request]:
    """What to ask for: `num_generations` completions per problem, of one prefix drawn from its buffer.

    A buffer that keeps no partial solutions (FCS only) has no prefix but the empty one to give. What is
    drawn for a problem depends on the seed, its id and its buffer, not on the problems beside it. `has_room`
    says whether the model could read a prefix and write on. What the buffer has kept are the drafts. Problems
    without any solution yet may be given more samples. If not `guided`, all begin from nothing.
    """

    def prefix_of(problem: Problem) -> Solution:
        if not guided:
            return EMPTY
        # Its own generator: what is drawn for a problem does not depend on those beside it.
        rng = random.Random(f"{seed}/{problem.id}")
        return buffers[problem.id].draw_prefix(rng, partial(has_room, problem))

    def count_for(problem: Problem) -> int:
        # A problem with a reference is solved from the start.
        is_solved = bool(buffers[problem.id].fully_correct)
        return num_generations if is_solved else num_generations_unsolved or num_generations

    return [
        Request(problem, prefix_of(problem), count_for(problem), drafts_of(buffers[problem.id]))
        for problem in problems
    ]


def drafts_of(buffer: SolutionBuffer) -> tuple[Solution, ...]:
    """What samples will probably resemble: the solutions found last."""
    return buffer.fully_correct[-MOST_DRAFTS:] + buffer.partially_correct[-MOST_DRAFTS:]
