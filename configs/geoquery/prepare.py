"""Draws what the arms with few references learn: all answers, and the references of a seeded choice.

    python configs/geoquery/prepare.py data/geoquery

- train_tenth.jsonl, train_quarter.jsonl: train.jsonl with references for 10% and 25% of its problems.
"""

import json
import random
import sys
from pathlib import Path

SHARES = {"tenth": 0.1, "quarter": 0.25}


def main(directory: Path) -> None:
    rows = [json.loads(line) for line in (directory / "train.jsonl").read_text("utf-8").split("\n")[:-1]]
    order = random.Random(0).sample(range(len(rows)), len(rows))  # a quarter holds the tenth
    for name, share in SHARES.items():
        kept = set(order[: round(share * len(rows))])
        lines = [json.dumps(row if n in kept else row | {"solution": None}) for n, row in enumerate(rows)]
        (directory / f"train_{name}.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
