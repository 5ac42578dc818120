"""Problems from the generator beside this package, `storyproblems`, which knows nothing of partway."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from random import Random
from typing import ParamSpec, TypeVar

import storyproblems
from partway.data.conversion import Conversion
from partway.errors import ConfigError
from partway.problem import Problem
from partway.solution import Solution
from storyproblems import Level as Level
from storyproblems import Splits, StoryError, StoryProblem
from storyproblems import situation_names as situation_names

Settings = ParamSpec("Settings")
Made = TypeVar("Made")
Wanted = TypeVar("Wanted")


def solution_paths(problem: Problem, rng: Random, count: int) -> list[Solution]:
    """Up to `count` different ways to solve a problem that the generator made."""
    try:
        return list(map(Solution, storyproblems.solution_paths(problem.meta, rng, count)))
    except StoryError as error:
        raise ConfigError(f"problem {problem.id} has {error}") from None


def _then(
    generate: Callable[Settings, Made], convert: Callable[[Made], Wanted]
) -> Callable[Settings, Wanted]:
    """A function of the generator that gives partway's values; a wrong setting is a user's mistake."""

    @wraps(generate)
    def generated(*arguments: Settings.args, **settings: Settings.kwargs) -> Wanted:
        try:
            return convert(generate(*arguments, **settings))
        except StoryError as error:
            raise ConfigError(str(error)) from None

    return generated


def _problems(stories: Sequence[StoryProblem]) -> list[Problem]:
    # The generator spells its steps canonically (a test holds it to that), so nothing is parsed here.
    return [Problem(one.id, one.question, one.answer, Solution(one.path), one.meta) for one in stories]


def _conversion(made: Splits) -> Conversion:
    splits = {"train": made.train, "dev": made.dev, "test": made.test}
    by_situation = Counter(story.meta["situation"] for stories in splits.values() for story in stories)
    notes: dict[str, object] = {"situations": dict(sorted(by_situation.items())), "held out": made.held_out}
    return Conversion({split: _problems(stories) for split, stories in splits.items()}, [], notes)


generate_splits = _then(storyproblems.generate_splits, _conversion)
generate_problems = _then(storyproblems.generate_problems, _problems)
