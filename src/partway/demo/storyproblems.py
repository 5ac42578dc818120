"""Problems from the generator beside this package, `storyproblems`, which knows nothing of partway."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random

import storyproblems
from partway.data.conversion import Conversion
from partway.errors import ConfigError
from partway.problem import Problem
from partway.solution import Solution
from storyproblems import Level as Level
from storyproblems import StoryError, StoryProblem
from storyproblems import situation_names as situation_names


def generate_splits(
    train: int,
    dev: int,
    test: int,
    *,
    seed: int = 0,
    difficulty: Level = "mixed",
    situations: Sequence[str] | None = None,
    holdout_situations: Sequence[str] | int = (),
) -> Conversion:
    """Problems for three splits that share no question; see `storyproblems.generate_splits`."""
    with _settings_are_the_users():
        made = storyproblems.generate_splits(
            train,
            dev,
            test,
            seed=seed,
            difficulty=difficulty,
            situations=situations,
            holdout_situations=holdout_situations,
        )
    splits = {"train": made.train, "dev": made.dev, "test": made.test}
    by_situation = Counter(story.meta["situation"] for stories in splits.values() for story in stories)
    notes: dict[str, object] = {"situations": dict(sorted(by_situation.items())), "held out": made.held_out}
    return Conversion({split: list(map(_problem, stories)) for split, stories in splits.items()}, [], notes)


def generate_problems(
    count: int,
    *,
    seed: int = 0,
    difficulty: Level = "mixed",
    situations: Sequence[str] | None = None,
) -> list[Problem]:
    """Problems with different questions, each with one of its solution paths as reference."""
    with _settings_are_the_users():
        stories = storyproblems.generate_problems(
            count, seed=seed, difficulty=difficulty, situations=situations
        )
    return list(map(_problem, stories))


def solution_paths(problem: Problem, rng: Random, count: int) -> list[Solution]:
    """Up to `count` different ways to solve a problem that the generator made."""
    try:
        return list(map(Solution, storyproblems.solution_paths(problem.meta, rng, count)))
    except StoryError as error:
        raise ConfigError(f"problem {problem.id} has {error}") from None


def _problem(story: StoryProblem) -> Problem:
    # The generator spells its steps canonically (a test holds it to that), so nothing is parsed here.
    return Problem(story.id, story.question, story.answer, Solution(story.path), story.meta)


@contextmanager
def _settings_are_the_users() -> Iterator[None]:
    try:
        yield
    except StoryError as error:
        raise ConfigError(str(error)) from None
