"""Problems to see whether what was learned from GSM8K carries over: SVAMP (Patel et al. 2021).

    python configs/gsm8k/svamp.py SVAMP.json data/svamp/test.jsonl

SVAMP.json is the file of github.com/arkilpatel/SVAMP; 150 of its 1,000 problems are drawn, a seeded choice.
"""

import json
import random
import sys
from pathlib import Path

from partway import Problem
from partway.datasets import write_problems

DRAWN = 150


def main(source: str, target: str) -> None:
    rows = json.loads(Path(source).read_text(encoding="utf-8"))
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    write_problems(Path(target), map(problem, random.Random(0).sample(rows, DRAWN)))


def problem(row: dict) -> Problem:
    story, question = row["Body"].strip(), row["Question"].strip()
    if not story.endswith((".", "!", "?")):  # it ends in "If ...", and the question goes on
        story, question = f"{story},", question[0].lower() + question[1:]
    return Problem(row["ID"], f"{story} {question}", row["Answer"], None)


if __name__ == "__main__":
    main(*sys.argv[1:])
