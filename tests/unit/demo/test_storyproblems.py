"""Generated stories as problems: the same bytes as ever, canonical references, one-line mistakes."""

import hashlib
import json
from pathlib import Path
from random import Random

import pytest

import storyproblems
from partway import Problem, Solution, is_correct, trace
from partway.demo.storyproblems import generate_problems, generate_splits, solution_paths
from partway.errors import ConfigError

LEVELS = {
    "easy": "738c22b5eef514fd",
    "medium": "bdf97a8ddf33c8ca",
    "hard": "bc08d8cd6d570580",
    "mixed": "c3a29a8cb0ebecb3",
}


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def rows(problems: list[Problem]) -> list[tuple[object, ...]]:
    return [(p.id, p.question, p.answer, p.reference.text, p.meta) for p in problems]


@pytest.mark.parametrize("level", LEVELS)
def test_the_same_seed_gives_the_same_problems_as_ever(level):
    assert digest(rows(generate_problems(300, seed=0, difficulty=level))) == LEVELS[level]


def test_splits_and_their_notes_are_the_same_as_ever():
    conversion = generate_splits(60, 20, 30, seed=2, holdout_situations=5)
    assert digest([(name, rows(split)) for name, split in conversion.splits.items()]) == "85ad0ece3395e67a"
    assert digest(conversion.notes) == "657e016ef0193310"
    assert conversion.rejects == []


def test_solution_paths_are_the_same_as_ever():
    problems = generate_problems(40, seed=1, difficulty="medium")
    paths = [path.text for problem in problems for path in solution_paths(problem, Random(1), 12)]
    assert digest(paths) == "19312f17163bd936"


def test_references_and_paths_are_canonical_and_give_the_answer():
    for problem in generate_problems(100, seed=4):
        for solution in [problem.reference, *solution_paths(problem, Random(0), 4)]:
            assert Solution.parse(solution.text) == solution
            assert is_correct(trace(solution).answer, problem.answer)


def test_the_examples_in_the_readme_are_real():
    page = (Path(storyproblems.__file__).parent / "README.md").read_text(encoding="utf-8")
    for problem in generate_problems(12, seed=42):
        assert problem.question in " ".join(page.split())
        assert "".join(f"       {step}\n" for step in problem.reference.steps) in page


def test_a_mistake_in_the_settings_is_the_users():
    with pytest.raises(ConfigError, match="did you mean fence"):
        generate_splits(1, 1, 1, holdout_situations=["fense"])
    with pytest.raises(ConfigError, match="unknown difficulty 'silly'"):
        generate_problems(1, difficulty="silly")
    with pytest.raises(ConfigError, match="problem mine has no quantities"):
        solution_paths(Problem("mine", "?", 1), Random(0), 3)
