"""The paper's MathQA-Python-Filtered: near-copies removed from train and dev, then split anew.

Which rows are in it is published as their numbers in train + dev of MathQA-Python. Without that file, the
rule that comes closest: walk train, then dev, and leave out each question whose template is at most two
token edits from a kept one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mathdata.mathqa.selection import problem_id, problems_as_written
from mathdata.mathqa.templates import distinct_templates, overlaps, template_of
from partway.data.conversion import Conversion
from partway.errors import ProblemError
from partway.problem import Problem

TEMPLATE_EDITS = 2
PUBLISHED_TRAIN = 19_209  # rows of MathQA-Python's train file, to which the published numbers refer
PUBLISHED_DEV = 2_822

# Costs of aligning our train rows with the published ones.
_OTHER_CHOICE = 4  # the rule keeps a row that is not in the published selection, or the other way round
_DOUBTFUL_ROW = 1  # a row of ours whose declared answer lost its digits is not among the published ones
_OTHER_ROW = 24  # any other row is not in both
_MORE_SHIFT = 40  # how far row numbers may drift apart, beyond the difference in length
_PAIR, _OURS_ONLY, _PUBLISHED_ONLY = range(3)


def filter_mathqa(
    conversion: Conversion,
    index: Mapping[str, Sequence[int]] | None = None,
    *,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Conversion:
    """The filtered train and dev splits, by the published `index` or by the rule; test stays as it is."""
    train, dev = conversion.splits["train"], conversion.splits["dev"]
    # Another copy of the files: rows are missing here that the published numbers count.
    if index is not None and len(train) != PUBLISHED_TRAIN:
        train = sorted([*train, *problems_as_written(conversion.rejects)], key=_row_number)
    merged = [*train, *dev]
    kept = distinct_templates([template_of(problem.question) for problem in merged], TEMPLATE_EDITS, progress)
    if index is None:
        notes: dict[str, object] = {"kept_by_rule": len(kept)}
        # Every tenth becomes dev.
        chosen = {"train": [row for place, row in enumerate(kept) if place % 10 != 9], "dev": kept[9::10]}
    else:
        rows = _published_rows(train, dev, kept, index)
        chosen = {
            split: [rows[number] for number in index[split] if number in rows] for split in ("train", "dev")
        }
        notes = _agreement(merged, kept, index, rows)
    splits = {split: [merged[row] for row in numbers] for split, numbers in chosen.items()}
    splits["test"] = conversion.splits["test"]
    questions = {split: [problem.question for problem in problems] for split, problems in splits.items()}
    notes["template_overlap"] = overlaps(questions)
    used = {problem.id for problems in splits.values() for problem in problems}
    rejects = [reject for reject in conversion.rejects if problem_id(reject.split, reject.row) not in used]
    return Conversion(splits, rejects, notes)


def read_split_index(path: Path) -> dict[str, list[int]]:
    """The published row numbers, `{"train": [...], "dev": [...]}` or with the authors' own keys."""
    try:
        content = json.loads(path.read_bytes())
        index = {split: content.get(split, content.get(f"{split}_idx")) for split in ("train", "dev")}
    except (ValueError, AttributeError) as error:
        raise ProblemError(f"{path}: not a split index: {error}") from None
    for split, numbers in index.items():
        if not isinstance(numbers, list) or not all(isinstance(number, int) for number in numbers):
            raise ProblemError(f"{path}: expected a list of row numbers as '{split}'")
        if any(not 0 <= number < PUBLISHED_TRAIN + PUBLISHED_DEV for number in numbers):
            raise ProblemError(f"{path}: a row number in '{split}' is outside MathQA-Python's train and dev")
    return index


def _published_rows(
    train: Sequence[Problem], dev: Sequence[Problem], kept: Sequence[int], index: Mapping[str, Sequence[int]]
) -> dict[int, int]:
    """Published row number -> place in our train + dev."""
    if len(dev) != PUBLISHED_DEV:
        raise ProblemError(f"the split index needs {PUBLISHED_DEV} dev rows, but there are {len(dev)}")
    # Dev rows are the published ones, after a train file of another length.
    rows = {PUBLISHED_TRAIN + number: len(train) + number for number in range(len(dev))}
    if len(train) == PUBLISHED_TRAIN:
        return rows | {number: number for number in range(len(train))}
    ours = _last_copies([*train, *dev], kept)
    published = {number for numbers in index.values() for number in numbers}
    aligned = align(
        [row in ours for row in range(len(train))],
        [number in published for number in range(PUBLISHED_TRAIN)],
        [problem.meta.get("is_doubtful", False) for problem in train],
    )
    return rows | aligned


def _row_number(problem: Problem) -> int:
    return int(problem.id.rpartition("/")[2])


def _last_copies(problems: Sequence[Problem], kept: Sequence[int]) -> set[int]:
    """Kept rows, each as the last row with the same question: the published numbers are made that way."""
    last = {problem.question.strip(): row for row, problem in enumerate(problems)}
    return {last[problems[row].question.strip()] for row in kept}


def _agreement(
    merged: Sequence[Problem],
    kept: Sequence[int],
    index: Mapping[str, Sequence[int]],
    rows: Mapping[int, int],
) -> dict[str, object]:
    numbers = [number for split in ("train", "dev") for number in index[split]]
    chosen = {rows[number] for number in numbers if number in rows}
    return {
        "index_rows": len(numbers),
        "index_rows_missing": sum(number not in rows for number in numbers),
        "index_rows_kept_by_rule": len(chosen & _last_copies(merged, kept)),
    }


def align(ours: Sequence[bool], published: Sequence[bool], is_doubtful: Sequence[bool]) -> dict[int, int]:
    """Published row -> our row, in order, such that as many as possible agree on being selected.

    Our train rows are not exactly the published ones where digits of declared answers are lost, so that row
    numbers drift apart; the selections show where. It is an edit distance along a narrow diagonal.
    """
    shift = abs(len(ours) - len(published)) + _MORE_SHIFT
    infinite = 10**9
    # costs[k]: our first i rows against the first i + k - shift published ones
    # Before our first row, only published ones can have been skipped.
    costs = [infinite] * shift + [k * _OTHER_ROW for k in range(shift + 1)]
    moves: list[bytearray] = []
    for i, is_ours in enumerate(ours):
        skip = _DOUBTFUL_ROW if is_doubtful[i] else _OTHER_ROW
        after, move = [infinite] * len(costs), bytearray(len(costs))
        for k in range(max(0, shift - i - 1), min(len(costs), len(published) + shift - i)):
            j = i + 1 + k - shift  # published rows used after our row i
            pair = costs[k] + _OTHER_CHOICE * (is_ours != published[j - 1]) if j else infinite
            ours_only = costs[k + 1] + skip if k + 1 < len(costs) else infinite
            published_only = after[k - 1] + _OTHER_ROW if k else infinite
            after[k] = best = min(pair, ours_only, published_only)
            move[k] = _PAIR if best == pair else _OURS_ONLY if best == ours_only else _PUBLISHED_ONLY
        costs = after
        moves.append(move)
    return _pairs(moves, len(published) - len(ours) + shift)


def _pairs(moves: Sequence[bytearray], k: int) -> dict[int, int]:
    """Follow the moves back from the end, where the diagonal was `k`."""
    rows: dict[int, int] = {}
    shift = (len(moves[0]) - 1) // 2
    i = len(moves)
    while i > 0:
        move = moves[i - 1][k]
        if move == _PAIR:
            rows[i - 1 + k - shift] = i - 1
            i -= 1
        elif move == _OURS_ONLY:
            i, k = i - 1, k + 1
        else:
            k -= 1
    return rows
