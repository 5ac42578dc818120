"""Gives problems without a reference the first solution that a run found, for the next round.

    partway buffer export runs/s0 solutions.jsonl --kind fully-correct
    python configs/mathqa/found.py data/quarter0/mixed.jsonl solutions.jsonl --out data/quarter0/found.jsonl

Problems that still have no solution are left out.
"""

import argparse
import json
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("mixed", type=Path)
    parser.add_argument("solutions", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    found: dict[str, str] = {}
    for row in rows(given.solutions):
        said = row["completion"]  # of a chat model one message, with the program as a block of code
        text = said if isinstance(said, str) else said[0]["content"]
        text = text.removeprefix("```python\n").removesuffix("```")
        found.setdefault(row["problem_id"], text.rstrip("\n"))
    problems = [{**row, "solution": row["solution"] or found.get(row["id"])} for row in rows(given.mixed)]
    solved = [row for row in problems if row["solution"]]
    given.out.write_text("".join(json.dumps(row) + "\n" for row in solved), encoding="utf-8")
    print(f"{len(solved):,} of {len(problems):,} problems have a solution: {given.out}")


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
