"""Problems to see whether what was learned from GSM8K carries over: SVAMP (Patel et al. 2021).

    python configs/gsm8k/svamp.py SVAMP.json data/svamp/test.jsonl

SVAMP.json is the file of github.com/arkilpatel/SVAMP; 150 of its 1,000 problems are drawn, a seeded choice.
"""

import random
import sys
from pathlib import Path

from partway import load_problems
from partway.problems import write_problems

DRAWN = 150


def main(source: str, target: str) -> None:
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    write_problems(Path(target), random.Random(0).sample(load_problems(source), DRAWN))


if __name__ == "__main__":
    main(*sys.argv[1:])
