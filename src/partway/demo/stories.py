"""The built-in problems: which the built-in model was pretrained on, and which are for experiments."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from itertools import islice

from partway.demo.storyproblems import Level, generate_problems
from partway.problem import Problem


def built_in_problems(
    counts: Mapping[str, int], seed: int, difficulty: Level = "easy"
) -> dict[str, list[Problem]]:
    """So many stories for each split, none of which the built-in model was pretrained on."""
    # About half of any stories are pretraining's; three times as many leave enough.
    drawn = generate_problems(3 * sum(counts.values()), seed=1_000 + seed, difficulty=difficulty)
    unseen = iter([problem for problem in drawn if not is_for_pretraining(problem)])
    return {split: list(islice(unseen, count)) for split, count in counts.items()}


def easy_problems(count: int, seed: int) -> list[Problem]:
    """Problems that differ in their questions, each with one reference in a style of its own."""
    return generate_problems(count, seed=seed, difficulty="easy")


def is_for_pretraining(problem: Problem) -> bool:
    """Half of all questions, told by their text, so that the halves have none in common."""
    return blake2b(problem.question.encode(), digest_size=1).digest()[0] % 2 == 0
