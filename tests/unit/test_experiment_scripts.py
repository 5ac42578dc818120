"""The scripts beside the configurations of experiments part problems as they say."""

import runpy
from pathlib import Path

import pytest

from partway.datasets import load_problems, write_problems
from partway.problem import Problem

CONFIGS = Path(__file__).parents[2] / "configs"


def write(path: Path, *questions: str) -> None:
    write_problems(
        path, [Problem(f"{path.stem}/{n}", text, 1, "answer = 1") for n, text in enumerate(questions)]
    )


def main_of(script: str):
    return runpy.run_path(str(CONFIGS / script))["main"]


def test_unseen_problems_are_more_than_two_words_from_all_that_is_learned(tmp_path):
    write(tmp_path / "first.jsonl", "a car covers 12 km in 3 h ; how fast is it ?", "what is 5 % of 80 ?")
    write(tmp_path / "rest.jsonl", "a pipe fills a tank in 4 h ; how long do 2 take ?")
    write(
        tmp_path / "dev.jsonl",
        "a car covers 700 km in 9.5 h ; how fast is it ?",  # other numbers
        "a train covers 12 km in 3 h ; how fast was it ?",  # two words
        "a train covers 12 km in 3 h ; how slow was it ?",  # three
    )
    write(tmp_path / "test.jsonl", "the pipe fills a large tank in 4 h ; how long do 2 take ?", "who is it ?")
    main_of("mathqa/unseen.py")(tmp_path)
    assert [p.id for p in load_problems(tmp_path / "dev_unseen.jsonl")] == ["dev/2"]
    assert [p.id for p in load_problems(tmp_path / "test_unseen.jsonl")] == ["test/1"]


@pytest.mark.models
def test_mathqa_is_parted_into_what_is_read_first_and_what_the_arms_learn(tmp_path):
    write(tmp_path / "train.jsonl", *(f"what is {n} % of {n + 7} ?" for n in range(3_010)))
    main_of("mathqa/prepare.py")(tmp_path)
    first, rest = (load_problems(tmp_path / f"{name}.jsonl") for name in ("first", "rest"))
    assert (len(first), len(rest)) == (10, 2_000)
    assert not {p.id for p in first} & {p.id for p in rest}
    assert (tmp_path / "untrained" / "config.json").exists()
