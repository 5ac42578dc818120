"""MathQA to problems with executable references: the rules and the selection of MathQA-Python.

A row is kept if its program computes, within 1%, the answer its options declare. The problem's answer is what
the program computes; its question ends in the numbers, ` n0 = 3.0 n1 = 10.0`, as published.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mathdata.mathqa.formulas import NUMBER, NoFormula, number_value, numbers_in, program_of
from mathdata.mathqa.templates import overlaps
from partway.data.conversion import Conversion, Reject
from partway.errors import ProblemError
from partway.language import Trace, trace_all
from partway.language.language import is_number
from partway.problem import Problem

Row = Mapping[str, Any]

COLUMNS = ("Problem", "options", "correct", "linear_formula", "category")
TOLERANCE = 0.01  # of MathQA-Python: declared answers are rounded
LOST_DIGITS = "declared answer lost its digits"
ROWS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Declared:
    """The declared answer: one value, or the range it lies in where a copy of the data lost its digits."""

    low: float
    high: float

    def agrees_with(self, result: float) -> bool:
        nearest = min(max(result, self.low), self.high)
        return math.isclose(nearest, result, rel_tol=TOLERANCE)


def convert_mathqa(
    splits: Mapping[str, Sequence[Row]], *, progress: Callable[[int, int], object] = lambda done, total: None
) -> Conversion:
    """Problems of each split of MathQA, the rows that MathQA-Python leaves out, and template overlap."""
    problems: dict[str, list[Problem]] = {}
    rejects: list[Reject] = []
    done, total = 0, sum(map(len, splits.values()))
    for split, rows in splits.items():
        problems[split] = []
        for start in range(0, len(rows), ROWS_AT_ONCE):
            chunk = rows[start : start + ROWS_AT_ONCE]
            for converted in _run([_candidate(split, index, row) for index, row in enumerate(chunk, start)]):
                if isinstance(converted, Problem):
                    problems[split].append(converted)
                else:
                    rejects.append(converted)
            done += len(chunk)
            progress(done, total)
    questions = {split: [problem.question for problem in kept] for split, kept in problems.items()}
    return Conversion(problems, rejects, {"template_overlap": overlaps(questions)})


def declared_answer(options: str, letter: str, *, is_cut: bool = False) -> Declared | None:
    """What `options` declare for `letter`: the first number after it, over the next if a slash follows.

    Some public copies of the train file lost what stands after a thousands comma, `b ) 14, c ) 15`, marked
    `options_cut`. There, a number before a bare comma or at the very end stands for its thousands.

    >>> declared_answer("a ) 24 , b ) 3 / 4", "b")
    Declared(low=0.75, high=0.75)
    >>> declared_answer("a ) 14, b ) 16, c ) 17", "b", is_cut=True)
    Declared(low=16000.0, high=16999.0)
    """
    place = options.find(f"{letter} )")  # options are one text: `a ) 24 , b ) 120 , c ) 625`
    number = NUMBER.search(options, place) if place >= 0 else None
    if number is None:
        return None
    value, end = number_value(number[0]), number.end()
    if not _is_fraction(options, number, place):
        is_cut = is_cut and _is_cut_at(options, end)
        return Declared(value * 1000, value * 1000 + 999) if is_cut else Declared(value, value)
    under = NUMBER.search(options, end)
    if under is None or number_value(under[0]) == 0:
        return None
    divisor = number_value(under[0])
    if is_cut and _is_cut_at(options, under.end()):
        return Declared(value / (divisor * 1000 + 999), value / (divisor * 1000))
    return Declared(value / divisor, value / divisor)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A row with a program, to be run."""

    split: str
    index: int
    row: Row
    numbers: list[float]
    program: str
    declared: Declared

    def rejected(self, reason: str, detail: str) -> Reject:
        return Reject(self.split, self.index, reason, detail, self.row)


def problem_id(split: str, row: int) -> str:
    """The id of the problem made of a row of the raw file."""
    return f"mathqa/{split}/{row}"


def problems_as_written(rejects: Sequence[Reject]) -> list[Problem]:
    """Problems of those rows left out for lost digits whose programs agree with the digits that are left.

    A few of them are in MathQA-Python: what the comma cut off there was not the rest of the number.
    """
    lost = [reject for reject in rejects if reject.reason == LOST_DIGITS]
    candidates = [
        _candidate(reject.split, reject.row, {**reject.record, "options_cut": None}) for reject in lost
    ]
    return [
        replace(problem, meta={**problem.meta, "is_doubtful": True})
        for problem in _run(candidates)
        if isinstance(problem, Problem)
    ]


def _run(candidates: Sequence[_Candidate | Reject]) -> list[Problem | Reject]:
    programs = [candidate.program for candidate in candidates if isinstance(candidate, _Candidate)]
    traces = iter(trace_all(programs))  # all at once: that is where tracing is fast
    return [
        candidate if isinstance(candidate, Reject) else _accepted(candidate, next(traces))
        for candidate in candidates
    ]


def _candidate(split: str, index: int, row: Row) -> _Candidate | Reject:
    missing = [column for column in COLUMNS if not isinstance(row.get(column), str)]
    if missing:
        raise ProblemError(
            f"MathQA {split}, row {index}: no text in '{missing[0]}'; is this the MathQA file?"
        )
    try:
        declared = declared_answer(row["options"], row["correct"], is_cut=bool(row.get("options_cut")))
        if declared is None:
            raise NoFormula("no declared answer", row["options"])
        if declared.low == 0:  # within 1% of 0 is nothing but 0
            raise NoFormula("declared answer is 0", row["options"])
        numbers = numbers_in(row["Problem"])
        return _Candidate(split, index, row, numbers, program_of(row["linear_formula"], numbers), declared)
    except NoFormula as error:
        return Reject(split, index, error.reason, error.detail, row)


def _accepted(candidate: _Candidate, trace: Trace) -> Problem | Reject:
    if trace.failure is not None:
        return candidate.rejected("program fails", trace.failure.message)
    if not is_number(trace.answer) or trace.answer == 0:
        return candidate.rejected("result is 0 or no number", str(trace.answer))
    declared = candidate.declared
    if not declared.agrees_with(trace.answer):
        is_cut = declared.low != declared.high
        reason = LOST_DIGITS if is_cut else "result is not the declared answer"
        return candidate.rejected(reason, f"{trace.answer} against {declared.low} to {declared.high}")
    numbers = "".join(f" n{place} = {number}" for place, number in enumerate(candidate.numbers))
    # Within a range of a thousand, agreement is weaker evidence.
    doubt = {"is_doubtful": True} if declared.low != declared.high else {}
    return Problem(
        id=problem_id(candidate.split, candidate.index),
        question=candidate.row["Problem"] + numbers,
        answer=trace.answer,
        reference=trace.solution,
        meta={name: candidate.row[name] for name in ("category", "linear_formula")} | doubt,
    )


def _is_fraction(options: str, number: re.Match[str], place: int) -> bool:
    """Whether a slash follows directly; as published, only where a whole number stands after `b ) `."""
    is_whole = number[0].lstrip("+-").isdigit()
    return is_whole and number.start() == place + len("b ) ") and options.startswith(" /", number.end())


def _is_cut_at(options: str, end: int) -> bool:
    # The original puts a space before the comma between options.
    return options[end : end + 1] == "," or not options[end:].strip(" ]'")
