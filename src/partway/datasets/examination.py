"""Rows to problems: each field is checked, and each reference is run and must give the answer."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

from partway.datasets.column_layouts import Complaint, Fields, fields_of
from partway.datasets.records import Record
from partway.documents import is_whole
from partway.execution import Programs, Trace
from partway.execution.programs import flaw_of, shown
from partway.problem import Problem

DEEPEST = 50  # lists in lists
GSM8K_ENDING = "answer = 0\n"  # how references made of GSM8K's markup end


Examined = Problem | list[Complaint]


def examine(records: Sequence[Record], programs: Programs) -> list[Examined]:
    """For each row its problem (with an empty id if it has none) or all complaints about it."""
    rows = [fields_of(record.fields) for record in records]
    if programs.end(GSM8K_ENDING) is not None:  # else the language does not know how such a reference ends
        rows = _with_gsm8k_solutions(rows)
    texts = [row.solution for row in rows if isinstance(row, Fields) and isinstance(row.solution, str)]
    traces = iter(programs.trace_all(texts))  # all at once; each row with a solution takes the next
    return [[row] if isinstance(row, Complaint) else _examine_fields(row, programs, traces) for row in rows]


def _with_gsm8k_solutions(rows: list[Fields | Complaint]) -> list[Fields | Complaint]:
    """Rows in GSM8K's markup get the reference that can be made of it; the others keep their answer."""
    marked = {
        index: {"question": row.question, "answer": row.gsm8k}
        for index, row in enumerate(rows)
        if isinstance(row, Fields) and row.gsm8k and row.solution is None
        # Only where the rest is as GSM8K has it: a question in words, a number behind the mark.
        if isinstance(row.question, str) and not isinstance(row.answer, str)
    }
    if marked:
        from partway.datasets.gsm8k import convert_gsm8k

        problems = convert_gsm8k([], list(marked.values())).splits["test"]
        for index, problem in zip(marked, problems, strict=True):
            row = rows[index]
            if isinstance(row, Fields) and problem.reference is not None:
                rows[index] = replace(row, solution=problem.reference.text)
    return rows


def _examine_fields(row: Fields, programs: Programs, traces: Iterator[Trace]) -> Examined:
    question_column, answer_column, solution_column = row.columns
    answer = _normal(row.answer)
    complaints = [*_id_complaints(row.id), *_question_complaints(row.question, question_column)]
    if answer is not None:
        complaints += _answer_complaints(answer, answer_column)
        complaints += [Complaint(answer_column, flaw)] if (flaw := _kind_flaw(row, programs)) else []
    elif row.solution is None:
        unused = f"; columns not used: {', '.join(map(str, row.others))}" if row.others else ""
        reason = f"missing, and there is no solution to compute it{unused}"
        complaints.append(Complaint(answer_column, reason))
    reference = None
    if isinstance(row.solution, str):
        trace = next(traces)
        flaws = list(_reference_complaints(trace, answer, programs, solution_column))
        reference = None if row.may_fail and flaws else trace.solution
        complaints += [] if row.may_fail else flaws
        answer = trace.answer if answer is None and trace.has_answer else answer
    elif row.solution is not None:
        complaints.append(Complaint(solution_column, f"expected text, found {_shown(row.solution)}"))
    meta = _meta(row)
    if meta is None:
        complaints.append(Complaint("meta", f"expected an object, found {_shown(row.meta)}"))
    complaints += _text_complaints(meta, "meta")
    if complaints:
        return complaints
    return Problem("" if row.id is None else str(row.id), row.question, answer, reference, meta or {})


def _kind_flaw(row: Fields, programs: Programs) -> str | None:
    """Whether a row has tests exactly where tests are run."""
    are_tests_run = programs.answer_flaw(None) is not None  # elsewhere any answer can be compared with
    if row.has_tests and not are_tests_run:
        return "a list of tests, which are run only with the setting `checker: tests` (here: --checker tests)"
    return programs.answer_flaw(row.answer)


def _id_complaints(value: Any) -> Iterator[Complaint]:
    is_number = isinstance(_normal(value), int) and value is not True and value is not False
    if value is None or is_number or (isinstance(value, str) and value.strip() and is_whole(value)):
        return
    yield Complaint("id", f"expected text or a whole number, found {_shown(value)}")


def _question_complaints(value: Any, column: str) -> Iterator[Complaint]:
    if not isinstance(value, str):
        yield Complaint(column, f"expected the text of a question, found {_shown(value)}")
    elif not value.strip():
        yield Complaint(column, "the question is empty")
    elif not is_whole(value):
        yield Complaint(column, "not valid UTF-8 text")


def _answer_complaints(value: Any, column: str, depth: int = 0) -> Iterator[Complaint]:
    """A plain value is a finite number, a truth value, text, or a list or object of these."""
    if depth > DEEPEST:
        yield Complaint(column, f"nested more than {DEEPEST} deep")
        return
    match value:
        case bool() | int():
            return
        case float():
            if not math.isfinite(value):
                yield Complaint(column, f"{_shown(value)} is not a number to compare with")
        case str():
            if not value.strip() or not is_whole(value):
                yield Complaint(column, f"expected a number or a plain value, found {_shown(value)}")
        case list() | tuple():
            for item in value:
                yield from _answer_complaints(item, column, depth + 1)
        case dict():
            for key, item in value.items():
                if not isinstance(key, str):  # JSON has no other names: the answer would come back changed
                    yield Complaint(column, f"expected texts as the names of an object, found {_shown(key)}")
                yield from _answer_complaints(item, column, depth + 1)
                yield from _text_complaints(key, column)
        case _:
            yield Complaint(column, f"expected a number or a plain value, found {_shown(value)}")


def _text_complaints(value: Any, column: str, depth: int = 0) -> Iterator[Complaint]:
    """What cannot be written to a file again, however deep it is in columns that nobody reads."""
    if depth > DEEPEST:
        yield Complaint(column, f"nested more than {DEEPEST} deep")
    elif isinstance(value, str) and not is_whole(value):
        yield Complaint(column, f"not valid UTF-8 text: {_shown(value)}")
    elif isinstance(value, Mapping | list | tuple):
        for item in (*value.keys(), *value.values()) if isinstance(value, Mapping) else value:
            yield from _text_complaints(item, column, depth + 1)


def _reference_complaints(trace: Trace, answer: Any, programs: Programs, column: str) -> Iterator[Complaint]:
    if answer is None and trace.has_answer:
        yield from _answer_complaints(trace.answer, column)
    elif (flaw := flaw_of(trace, answer, programs)) is not None:
        yield Complaint(column, flaw)


def _meta(row: Fields) -> dict[str, Any] | None:
    """What the row says beside the problem: its `meta` and the columns that mean nothing to partway."""
    meta = row.meta
    if isinstance(meta, str):  # as a CSV file has it
        try:
            meta = json.loads(meta)
        except (ValueError, RecursionError):
            return None
    if meta is not None and not isinstance(meta, Mapping):
        return None
    return {**row.others, **(meta or {})}


def _normal(value: Any) -> Any:
    """Numbers of other libraries as Python's own."""
    match value:
        case bool() | int() | float():
            return value
        case Integral():
            return int(value)
        case Decimal() | Fraction() | Real():
            number = float(value)
            return int(number) if number.is_integer() else number
    return value


def _shown(value: Any) -> str:
    return "nothing" if value is None else shown(value)
