"""Built-in word problems: grade-school stories in varied English, each with many solution paths.

A story tells one of some sixty situations, perhaps with sequels; its quantities form a graph, and every
solution path is a walk through that graph. The same seed gives the same problems, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from random import Random
from typing import Literal, get_args

from partway.datasets.conversion import Conversion
from partway.datasets.storyproblems.dice import pick, shuffled
from partway.datasets.storyproblems.paths import draw_path, draw_paths
from partway.datasets.storyproblems.quantities import QuantityGraph
from partway.datasets.storyproblems.situation import Situation
from partway.datasets.storyproblems.situations import OPENINGS, SEQUELS_BY_KIND
from partway.datasets.storyproblems.stories import DIFFICULTIES, Difficulty, Story, draw_story
from partway.errors import ConfigError
from partway.problem import Problem
from partway.solution import Solution

Level = Literal["easy", "medium", "hard", "mixed"]

STORY_DRAWS = 12
PATIENCE = 200

__all__ = ["Level", "generate_problems", "generate_splits", "situation_names", "solution_paths"]


def situation_names() -> list[str]:
    """The situations a story can open with."""
    return list(OPENINGS)


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
    """Problems for three splits that share no question.

    Situations held out, by name or as a number of them, make up the whole test split and occur in no other.
    A split does not depend on the sizes of those that are made after it: first test, then dev, then train.
    """
    kept, held_out = _divided(situations, holdout_situations, seed)
    questions: set[str] = set()
    splits = {
        split: _problems(count, f"story-{seed}-{split}", difficulty, names, questions)
        for split, count, names in (
            ("test", test, held_out or kept),
            ("dev", dev, kept),
            ("train", train, kept),
        )
    }
    by_situation = Counter(problem.meta["situation"] for problems in splits.values() for problem in problems)
    notes: dict[str, object] = {"situations": dict(sorted(by_situation.items())), "held out": held_out}
    return Conversion({split: splits[split] for split in ("train", "dev", "test")}, [], notes)


def generate_problems(
    count: int,
    *,
    seed: int = 0,
    difficulty: Level = "mixed",
    situations: Sequence[str] | None = None,
) -> list[Problem]:
    """Problems with different questions, each with one of its solution paths as reference."""
    return _problems(count, f"story-{seed}", difficulty, _known(situations), set())


def solution_paths(problem: Problem, rng: Random, count: int) -> list[Solution]:
    """Up to `count` different ways to solve a problem that this module generated."""
    if "formulas" not in problem.meta:
        raise ConfigError(
            f"problem {problem.id} has no quantities in its meta; generate it with storyproblems"
        )
    return draw_paths(QuantityGraph.from_json(problem.meta), rng, count)


def _problems(
    count: int, prefix: str, difficulty: str, situations: Sequence[str], questions: set[str]
) -> list[Problem]:
    """Problems whose questions are not among `questions`, to which they are added."""
    if difficulty not in DIFFICULTIES:
        raise ConfigError(f"unknown difficulty {difficulty!r}; choose from {', '.join(get_args(Level))}")
    rng = Random(f"{prefix}/{difficulty}")
    problems: list[Problem] = []
    draws_in_vain = 0
    while len(problems) < count:
        story = _draw_story(OPENINGS[pick(rng, situations)], DIFFICULTIES[difficulty], rng)
        if story is not None and story.question not in questions:
            questions.add(story.question)
            problems.append(_problem(f"{prefix}-{len(problems)}", story, rng))
            draws_in_vain = 0
        elif (draws_in_vain := draws_in_vain + 1) == PATIENCE:
            raise ConfigError(
                f"found only {len(problems)} of {count} {difficulty} questions; allow more situations"
            )
    return problems


def _draw_story(situation: Situation, difficulty: Difficulty, rng: Random) -> Story | None:
    for _ in range(STORY_DRAWS):
        story = draw_story(situation, SEQUELS_BY_KIND, difficulty, rng)
        if story is not None:
            return story
    return None


def _problem(problem_id: str, story: Story, rng: Random) -> Problem:
    meta = {
        "situation": story.situation,
        "operations": story.graph.operations,
        **story.graph.to_json(),
        "distractors": dict(story.distractors),
    }
    return Problem(problem_id, story.question, story.answer, draw_path(story.graph, rng), meta)


def _divided(
    situations: Sequence[str] | None, holdout: Sequence[str] | int, seed: int
) -> tuple[list[str], list[str]]:
    """The situations to keep and those to hold out."""
    names = _known(situations)
    if isinstance(holdout, int):
        holdout = sorted(shuffled(Random(f"story-{seed}-holdout"), names)[:holdout])
    held_out = _known(holdout)
    kept = [name for name in names if name not in held_out]
    if not kept:
        raise ConfigError(f"all {len(names)} situations are held out; leave some for train and dev")
    return kept, held_out


def _known(names: Sequence[str] | None) -> list[str]:
    """The names, if all of them are situations; all situations if none are named."""
    if names is None:
        return situation_names()
    for name in names:
        if name not in OPENINGS:
            near = get_close_matches(name, OPENINGS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(OPENINGS)}"
            raise ConfigError(f"unknown situation {name!r}; {hint}")
    return list(dict.fromkeys(names))
