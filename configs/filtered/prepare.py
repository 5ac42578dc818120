"""Draws what the arms of configs/filtered learn and are measured on.

    python configs/filtered/prepare.py data/mathqa-filtered

Of MathQA-Python-Filtered's problems whose reference has at most two steps beside the question's numbers:
short100.jsonl, a seeded choice of 100 of train, and dev_short.jsonl, all of dev.
"""

import json
import random
import sys
from pathlib import Path

LEARNED, SHORT_STEPS = 100, 2


def main(directory: Path) -> None:
    train, dev = (short_problems(directory / f"{split}.jsonl") for split in ("train", "dev"))
    random.Random(0).shuffle(train)
    write(directory / "short100.jsonl", train[:LEARNED])
    write(directory / "dev_short.jsonl", dev)


def short_problems(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").split("\n")[:-1] if is_short(line)]


def is_short(line: str) -> bool:
    """Whether few steps of the reference compute; its others copy a number (`n0 = 80.0`)."""
    steps = json.loads(line)["solution"].split("\n")
    return sum(not step.startswith("n") for step in steps) <= SHORT_STEPS


def write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    print(f"{path}: {len(lines)} problems")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
