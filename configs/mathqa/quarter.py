"""Keeps the references of a share of the training problems, a seeded choice; the others have the answer only.

    python configs/mathqa/quarter.py data/mathqa/train.jsonl --share 0.25 --seed 0 --out data/quarter0

`labelled.jsonl` has the problems that keep their reference, `mixed.jsonl` all of them.
"""

import argparse
import json
import random
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("train", type=Path)
    parser.add_argument("--share", type=float, default=0.25)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.train.read_text(encoding="utf-8").splitlines()]
    count = round(given.share * len(rows))
    chosen = set(random.Random(f"references/{given.seed}").sample(range(len(rows)), count))
    given.out.mkdir(parents=True, exist_ok=True)
    mixed = [row if index in chosen else {**row, "solution": None} for index, row in enumerate(rows)]
    write(given.out / "labelled.jsonl", [rows[index] for index in sorted(chosen)])
    write(given.out / "mixed.jsonl", mixed)


def write(path: Path, rows: list[dict]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
