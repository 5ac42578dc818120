"""Word problems from a generator: grade-school stories in varied English, each with many solution paths.

A story tells one of some sixty situations, perhaps with sequels; its quantities form a graph, and every
solution path is a walk through that graph. The same seed gives the same problems, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from random import Random
from typing import Any, Literal, get_args

from storyproblems.dice import pick, shuffled
from storyproblems.expressions import Value
from storyproblems.paths import Path, draw_path, draw_paths
from storyproblems.quantities import QuantityGraph
from storyproblems.situation import Situation
from storyproblems.situations import OPENINGS, SEQUELS_BY_KIND
from storyproblems.stories import DIFFICULTIES, Difficulty, Story, draw_story

Level = Literal["easy", "medium", "hard", "mixed"]

STORY_DRAWS = 12  # of one situation, before another is tried
PATIENCE = 200  # draws in vain: there may be no other question to find

__all__ = [
    "Level",
    "Splits",
    "StoryError",
    "StoryProblem",
    "generate_problems",
    "generate_splits",
    "situation_names",
    "solution_paths",
]


class StoryError(ValueError):
    """A setting that the generator cannot work with; the message says what to try."""


@dataclass(frozen=True, slots=True)
class StoryProblem:
    """A question in words, its answer, one program that computes it, and what the story is made of."""

    id: str
    question: str
    answer: Value
    path: Path
    meta: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Splits:
    """Problems for training, for choosing and for testing, and the situations that only the test has."""

    train: list[StoryProblem]
    dev: list[StoryProblem]
    test: list[StoryProblem]
    held_out: list[str]


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
) -> Splits:
    """Problems for three splits that share no question.

    Situations held out, by name or as a number of them, make up the whole test split and occur in no other.
    A split does not depend on the sizes of those that are made after it: first test, then dev, then train.
    """
    kept, held_out = _divided(situations, holdout_situations, seed)
    questions: set[str] = set()

    def split(name: str, count: int, names: Sequence[str]) -> list[StoryProblem]:
        return _problems(count, f"story-{seed}-{name}", difficulty, names, questions)

    test_problems = split("test", test, held_out or kept)
    dev_problems = split("dev", dev, kept)
    return Splits(split("train", train, kept), dev_problems, test_problems, held_out)


def generate_problems(
    count: int,
    *,
    seed: int = 0,
    difficulty: Level = "mixed",
    situations: Sequence[str] | None = None,
) -> list[StoryProblem]:
    """Problems with different questions, each with one of its solution paths.

    >>> generate_problems(1, difficulty="easy", situations=["ages"])[0].path
    ('n0 = 7', 'n1 = 3', 't0 = n0 - n1', 'answer = n0 + t0')
    """
    return _problems(count, f"story-{seed}", difficulty, _known(situations), set())


def solution_paths(meta: Mapping[str, Any], rng: Random, count: int) -> list[Path]:
    """Up to `count` different ways to solve a problem that this package generated, told by its `meta`."""
    if "formulas" not in meta:
        raise StoryError("no quantities in its meta; generate it with storyproblems")
    return draw_paths(QuantityGraph.from_json(meta), rng, count)


def _problems(
    count: int, prefix: str, difficulty: str, situations: Sequence[str], questions: set[str]
) -> list[StoryProblem]:
    """Problems whose questions are not among `questions`, to which they are added."""
    if difficulty not in DIFFICULTIES:
        raise StoryError(f"unknown difficulty {difficulty!r}; choose from {', '.join(get_args(Level))}")
    # Seeded by the split's name, so that no split moves the random numbers of another.
    rng = Random(f"{prefix}/{difficulty}")
    problems: list[StoryProblem] = []
    draws_in_vain = 0
    while len(problems) < count:
        story = _draw_story(OPENINGS[pick(rng, situations)], DIFFICULTIES[difficulty], rng)
        if story is not None and story.question not in questions:
            questions.add(story.question)
            problems.append(_problem(f"{prefix}-{len(problems)}", story, rng))
            draws_in_vain = 0
        elif (draws_in_vain := draws_in_vain + 1) == PATIENCE:
            raise StoryError(
                f"found only {len(problems)} of {count} {difficulty} questions; allow more situations"
            )
    return problems


def _draw_story(situation: Situation, difficulty: Difficulty, rng: Random) -> Story | None:
    for _ in range(STORY_DRAWS):
        story = draw_story(situation, SEQUELS_BY_KIND, difficulty, rng)
        if story is not None:
            return story
    return None


def _problem(problem_id: str, story: Story, rng: Random) -> StoryProblem:
    meta = {
        "situation": story.situation,
        "operations": story.graph.operations,
        **story.graph.to_json(),
        "distractors": dict(story.distractors),
    }
    return StoryProblem(problem_id, story.question, story.answer, draw_path(story.graph, rng), meta)


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
        raise StoryError(f"all {len(names)} situations are held out; leave some for train and dev")
    return kept, held_out


def _known(names: Sequence[str] | None) -> list[str]:
    """The names, if all of them are situations; all situations if none are named."""
    if names is None:
        return situation_names()
    for name in names:
        if name not in OPENINGS:
            near = get_close_matches(name, OPENINGS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(OPENINGS)}"
            raise StoryError(f"unknown situation {name!r}; {hint}")
    return list(dict.fromkeys(names))
