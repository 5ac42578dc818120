"""The problems of a comparison: built-in stories that no pretraining has seen, or a folder of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from random import Random

from partway.datasets import load_problems
from partway.errors import ProblemError
from partway.problem import Problem


def built_in_problems(counts: Mapping[str, int], seed: int) -> dict[str, list[Problem]]:
    """So many easy stories for each split, none of which the built-in model was pretrained on."""
    # About half of any stories are pretraining's; three times as many leave enough.
    drawn = easy_problems(3 * sum(counts.values()), seed=1_000 + seed)
    unseen = iter([problem for problem in drawn if not is_for_pretraining(problem)])
    return {split: list(islice(unseen, count)) for split, count in counts.items()}


def problems_in(folder: Path, counts: Mapping[str, int], seed: int) -> dict[str, list[Problem]]:
    """So many problems of each split's file in a folder; each seed draws its own."""
    return {split: _drawn(folder / f"{split}.jsonl", count, seed) for split, count in counts.items()}


def _drawn(file: Path, count: int, seed: int) -> list[Problem]:
    problems = load_problems(file)
    if len(problems) < count:
        raise ProblemError(f"{file}: {len(problems):,} problems, {count:,} are needed")
    # The name keeps splits of equal size from drawing the same places.
    return Random(f"{seed}/{file.name}").sample(problems, count)


def easy_problems(count: int, seed: int) -> list[Problem]:
    """Problems that differ in their questions, each with one reference in a style of its own."""
    from partway.datasets.storyproblems import generate_problems

    return generate_problems(count, seed=seed, difficulty="easy")


def is_for_pretraining(problem: Problem) -> bool:
    """Half of all questions, told by their text, so that the halves have none in common."""
    return blake2b(problem.question.encode(), digest_size=1).digest()[0] % 2 == 0
