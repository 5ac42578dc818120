"""The dev and test problems of MathQA unlike all that is learned.

    python configs/mathqa/unseen.py data/mathqa

Writes dev_unseen.jsonl and test_unseen.jsonl: problems whose question, numbers masked, is more than two words
away from every question in first.jsonl and rest.jsonl. That is the rule by which MathQA-Filtered parts train
from dev.
"""

import sys
from collections import defaultdict
from pathlib import Path

from partway import load_problems
from partway.datasets.mathqa.filtered import TEMPLATE_EDITS
from partway.datasets.mathqa.templates import Template, template_of, within_edits


def main(directory: Path) -> None:
    learned: defaultdict[int, set[Template]] = defaultdict(set)
    for name in ("first", "rest"):
        for problem in load_problems(directory / f"{name}.jsonl"):
            template = template_of(problem.question)
            learned[len(template)].add(template)
    for split in ("dev", "test"):
        file = directory / f"{split}.jsonl"
        rows = zip(
            file.read_text(encoding="utf-8").splitlines(keepends=True), load_problems(file), strict=True
        )
        unseen = [row for row, problem in rows if is_unseen(template_of(problem.question), learned)]
        (directory / f"{split}_unseen.jsonl").write_text("".join(unseen), encoding="utf-8")
        print(f"{split}: {len(unseen)} problems unlike those that are learned")


def is_unseen(template: Template, learned: dict[int, set[Template]]) -> bool:
    lengths = range(len(template) - TEMPLATE_EDITS, len(template) + TEMPLATE_EDITS + 1)
    near = (other for length in lengths for other in learned.get(length, ()))
    return not any(within_edits(template, other, TEMPLATE_EDITS) for other in near)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
