"""Splits MathQA's training problems and makes the untrained model.

    python configs/mathqa/prepare.py data/mathqa

Writes first.jsonl (16,217 problems to learn to write programs from) and rest.jsonl (2,000 others that the
arms learn) beside train.jsonl, and an untrained model of 1.4 million weights in `untrained/`.
"""

import random
import sys
from pathlib import Path

from partway import load_problems
from partway.models.tiny import build_tiny_model

HELD_OUT, LEARNED = 3_000, 2_000


def main(directory: Path) -> None:
    rows = (directory / "train.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    random.Random(0).shuffle(rows)
    (directory / "first.jsonl").write_text("".join(rows[HELD_OUT:]), encoding="utf-8")
    (directory / "rest.jsonl").write_text("".join(rows[:LEARNED]), encoding="utf-8")
    problems = load_problems(directory / "train.jsonl")  # its words are the tokenizer's
    build_tiny_model(problems, context_length=768, directory=directory / "untrained")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
