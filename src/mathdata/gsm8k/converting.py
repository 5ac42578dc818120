"""Rows of GSM8K to problems: splits, ids, answers, and a reference wherever one follows from the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Literal

from mathdata.gsm8k.paper import read_paper_program
from mathdata.gsm8k.solutions import NoProgram, Program, WrittenSolution, read_program
from partway.cli.parallel import side_by_side
from partway.data.conversion import Conversion, Reject
from partway.language import Trace, is_correct, trace_all
from partway.problem import Problem

Style = Literal["partway", "paper"]
TRAIN_SHARE = 0.8
ROWS_AT_ONCE = 500
ROWS_PER_PROCESS = 1_000  # fewer are read before another process has started
_NUMBER = re.compile(r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})")
STEP_RULES = ("annotation", "equation", "linear", "letter", "units", "percent", "cents", "rounding")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a raw file: its split, its place in the split and in the file, and what it holds."""

    split: str
    split_row: int
    id: str
    file_row: int
    record: Mapping[str, object]

    @property
    def question(self) -> str:
        return str(self.record["question"])

    @property
    def lines(self) -> tuple[str, ...]:
        """The written solution without the line of the answer."""
        return tuple(str(self.record["answer"]).rpartition("####")[0].removesuffix("\n").split("\n"))

    @property
    def value(self) -> Fraction | None:
        """The number after ####, None if there is none."""
        text = self._ending.replace(",", "").replace("$", "")
        return Fraction(text) if _NUMBER.fullmatch(text) else None

    @property
    def answer(self) -> int | float | str:
        """What stands after ####: a number, or text if it is none."""
        value = self.value
        if value is None:
            return self._ending
        return int(value) if value.denominator == 1 else float(value)

    @property
    def _ending(self) -> str:
        return str(self.record["answer"]).rpartition("####")[2].strip()


def convert_gsm8k(
    train_rows: Sequence[Mapping[str, object]],
    test_rows: Sequence[Mapping[str, object]],
    *,
    style: Style = "partway",
    processes: int = 1,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Conversion:
    """Problems of train (the first 80% of the train file), dev (the rest) and test.

    Rows without a program are left out of train and stay in dev and test, which need no reference. Several
    processes read the written solutions side by side, with the same result.
    """
    rows = [*_rows(train_rows, test_rows)]
    splits: dict[str, list[Problem]] = {"train": [], "dev": [], "test": []}
    rejects: list[Reject] = []
    with side_by_side(min(processes, 1 + len(rows) // ROWS_PER_PROCESS)) as run_all:
        drafts = run_all(partial(_drafted, style=style), rows)
        # Drafts are read side by side, but run here in chunks: programs run fastest many at a time.
        for start in range(0, len(rows), ROWS_AT_ONCE):
            chunk = rows[start : start + ROWS_AT_ONCE]
            for row, result in zip(
                chunk, _convert(chunk, list(islice(drafts, len(chunk))), style), strict=True
            ):
                if isinstance(result, NoProgram):
                    rejects.append(Reject(row.split, row.file_row, result.reason, result.detail, row.record))
                if not isinstance(result, NoProgram) or row.split != "train":
                    splits[row.split].append(_problem(row, result))
            progress(start + len(chunk), len(rows))
    return Conversion(splits, rejects, {"programs_by_rule": _programs_by_rule(splits)})


def _rows(train: Sequence[Mapping[str, object]], test: Sequence[Mapping[str, object]]) -> Iterator[Row]:
    # Ids count the rows of the raw file: moving the cut renames no problem.
    cut = int(len(train) * TRAIN_SHARE)  # the paper reserves 20% as dev; the first part stays train
    for index, record in enumerate(train):
        split, split_row = ("train", index) if index < cut else ("dev", index - cut)
        yield Row(split, split_row, f"gsm8k-train-{index}", index, record)
    for index, record in enumerate(test):
        yield Row("test", index, f"gsm8k-test-{index}", index, record)


Converted = tuple[Program, Trace]


def _convert(
    rows: Sequence[Row], drafts: Sequence[Program | NoProgram], style: Style
) -> Iterator[Converted | NoProgram]:
    traces = iter(trace_all([draft.text for draft in drafts if isinstance(draft, Program)]))
    for row, draft in zip(rows, drafts, strict=True):
        if isinstance(draft, NoProgram):
            yield draft
            continue
        trace = next(traces)
        # A program that follows from the text may still differ from it: people round, and err.
        right = is_correct(trace.answer, row.answer)
        if style == "paper":  # the authors ask for the very same float
            right = right and float(trace.answer) == row.answer
        detail = f"the program gives {trace.answer}, the answer is {row.answer}"
        yield (draft, trace) if right else NoProgram("the program gives another answer", detail)


def _drafted(row: Row, style: Style) -> Program | NoProgram:
    """The program that follows from a written solution; it has not run yet."""
    value = row.value
    if value is None:
        return NoProgram("the answer is not a number", f"found {row.answer!r} after ####")
    if style == "paper":
        return read_paper_program(row.question, row.lines)
    return read_program(WrittenSolution(row.question, row.lines, value))


def _problem(row: Row, result: Converted | NoProgram) -> Problem:
    meta: dict[str, object] = {"split_row": row.split_row}
    if isinstance(result, NoProgram):
        return Problem(row.id, row.question, row.answer, None, {**meta, "no_reference": result.reason})
    draft, trace = result
    meta |= {"rules": list(draft.rules), "sources": list(draft.sources)}
    return Problem(row.id, row.question, row.answer, trace.solution, meta)


def _programs_by_rule(splits: Mapping[str, Sequence[Problem]]) -> dict[str, dict[str, int]]:
    """In how many programs of each split a rule made a step, or a constant is unexplained."""
    table = {}
    for rule in (*STEP_RULES, "unexplained"):
        counts = {
            split: sum(rule in problem.meta.get("rules", ()) for problem in problems)
            for split, problems in splits.items()
        }
        if any(counts.values()):
            table[rule if rule != "unexplained" else "(unexplained constant)"] = counts
    return table
