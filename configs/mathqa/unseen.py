"""The dev and test problems of MathQA unlike all that is learned.

    python configs/mathqa/unseen.py data/mathqa
    python configs/mathqa/unseen.py data/mathqa train

Writes dev_unseen.jsonl and test_unseen.jsonl: problems whose question, numbers masked, is more than two words
away from every question in first.jsonl and rest.jsonl. That is the rule by which MathQA-Filtered parts train
from dev. With `train` it writes dev_other.jsonl and test_other.jsonl: problems unlike all of train.jsonl,
those of test unlike those of dev, too, so that a model that has read train.jsonl can learn the ones and be
measured on the others. It parts dev_other.jsonl once more, into few_other.jsonl, the first 256, to be learned
again and again, and rest_other.jsonl, to watch that.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from mathdata.mathqa.filtered import TEMPLATE_EDITS
from mathdata.mathqa.templates import Template, template_of, within_edits
from partway import Problem, load_problems

FEW = 256


def main(directory: Path, *names: str) -> None:
    learned: defaultdict[int, set[Template]] = defaultdict(set)
    for name in names or ("first", "rest"):
        learn(load_problems(directory / f"{name}.jsonl"), learned)
    for split in ("dev", "test"):
        file = directory / f"{split}.jsonl"
        rows = zip(
            file.read_text(encoding="utf-8").splitlines(keepends=True), load_problems(file), strict=True
        )
        unseen = [
            (row, problem) for row, problem in rows if is_unseen(template_of(problem.question), learned)
        ]
        found = [row for row, _ in unseen]
        write(directory / f"{split}_{'other' if names else 'unseen'}.jsonl", found)
        print(f"{split}: {len(unseen)} problems unlike those that are learned")
        if names:
            learn((problem for _, problem in unseen), learned)
        if names and split == "dev":
            write(directory / "few_other.jsonl", found[:FEW])
            write(directory / "rest_other.jsonl", found[FEW:])


def write(file: Path, rows: list[str]) -> None:
    file.write_text("".join(rows), encoding="utf-8")


def learn(problems: Iterable[Problem], learned: dict[int, set[Template]]) -> None:
    for problem in problems:
        template = template_of(problem.question)
        learned[len(template)].add(template)


def is_unseen(template: Template, learned: dict[int, set[Template]]) -> bool:
    lengths = range(len(template) - TEMPLATE_EDITS, len(template) + TEMPLATE_EDITS + 1)
    near = (other for length in lengths for other in learned.get(length, ()))
    return not any(within_edits(template, other, TEMPLATE_EDITS) for other in near)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
