"""The scripts beside the configurations of experiments part problems as they say."""

import runpy
from pathlib import Path

import pytest

from partway.comparing.arms import load_arms
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


def test_gsm8k_problems_of_two_steps_are_parted_from_the_others(tmp_path):
    two, three = "n0 = 3\nt0 = n0 * 2\nanswer = t0 + 1", "n0 = 3\nt0 = n0 * 2\nt1 = t0 - 1\nanswer = t1 + 2"
    for split, size in [("train", 720), ("dev", 4), ("test", 6)]:
        programs = ([two, three, None] * size)[:size]
        problems = [Problem(f"{split}/{n}", "how many?", 7, program) for n, program in enumerate(programs)]
        write_problems(tmp_path / f"{split}.jsonl", problems)
    main_of("gsm8k/prepare.py")(tmp_path)
    learned, short, dev, test = (
        load_problems(tmp_path / f"{name}.jsonl")
        for name in ("train200", "short100", "dev_short", "test_short")
    )
    assert (len(learned), len(short), len(dev), len(test)) == (200, 100, 2, 2)
    assert {str(p.reference) for p in short + dev + test} == {two}
    assert {str(p.reference) for p in learned} == {two, three}


def test_the_arms_beside_the_examples_can_be_compared():
    files = sorted((CONFIGS.parent / "examples" / "arms").glob("*.yaml"))
    labels = [arm.label for arm in load_arms([str(file) for file in files])]
    assert "FCS+PCS, states as sets" in labels
    assert len(set(labels)) == len(files)
