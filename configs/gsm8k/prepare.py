"""Draws what the arms of configs/gsm8k learn and are measured on.

    python configs/gsm8k/prepare.py data/gsm8k

- train200.jsonl: 200 problems of train.jsonl that have a reference, a seeded choice.
- short100.jsonl: 100 of those whose reference has two steps beside the question's numbers, a seeded choice.
- short.jsonl: all of that kind, in the order of that choice.
- few.jsonl: the same; only the first 100 keep their reference. few_unsolved.jsonl: the others alone.
- dev_short.jsonl, test_short.jsonl: all problems of dev and test of that kind.
- two-step/train.jsonl, dev.jsonl, test.jsonl: those of that kind again, as `partway compare` looks for them.
"""

import json
import random
import sys
from pathlib import Path

LEARNED, SHORT_LEARNED = 200, 100
SHORT_STEPS = 2


def main(directory: Path) -> None:
    train = with_reference(directory / "train.jsonl")
    write(directory / "train200.jsonl", shuffled(train)[:LEARNED])
    short = shuffled(filter(is_short, train))
    write(directory / "short100.jsonl", short[:SHORT_LEARNED])
    write(directory / "short.jsonl", short)
    unsolved = [without_reference(line) for line in short[SHORT_LEARNED:]]
    write(directory / "few.jsonl", short[:SHORT_LEARNED] + unsolved)
    write(directory / "few_unsolved.jsonl", unsolved)
    (directory / "two-step").mkdir(exist_ok=True)
    write(directory / "two-step" / "train.jsonl", short)
    for split in ["dev", "test"]:
        lines = [*filter(is_short, with_reference(directory / f"{split}.jsonl"))]
        write(directory / f"{split}_short.jsonl", lines)
        write(directory / "two-step" / f"{split}.jsonl", lines)


def with_reference(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [line for line in lines if '"solution": "' in line]


def is_short(line: str) -> bool:
    """Whether the reference has two steps that compute; its others copy a number (`n0 = 80`)."""
    steps = json.loads(line)["solution"].split("\n")
    return sum(not step.startswith("n") for step in steps) == SHORT_STEPS


def without_reference(line: str) -> str:
    return json.dumps({**json.loads(line), "solution": None, "meta": {}})


def shuffled(lines) -> list[str]:
    lines = list(lines)
    random.Random(0).shuffle(lines)
    return lines


def write(path: Path, lines) -> None:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
