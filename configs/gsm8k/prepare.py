"""Draws the problems that the arms of configs/gsm8k learn: `python configs/gsm8k/prepare.py data/gsm8k`.

Writes train200.jsonl: 200 problems of train.jsonl that have a reference, a seeded choice.
"""

import random
import sys
from pathlib import Path

LEARNED = 200


def main(directory: Path) -> None:
    lines = (directory / "train.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    with_reference = [line for line in lines if '"solution": "' in line]
    random.Random(0).shuffle(with_reference)
    (directory / "train200.jsonl").write_text("\n".join(with_reference[:LEARNED]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
