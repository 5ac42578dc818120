"""Makes problems of rows: checks each field, and runs each reference, which must give the answer."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

from partway import registry
from partway.data.column_layouts import Complaint, Fields, fields_of
from partway.data.records import Record
from partway.errors import shown
from partway.language import Language, Trace
from partway.language.language import flaw_of, tests_of
from partway.language.named import settings_of
from partway.problem import Problem

DEEPEST = 50  # lists in lists
WRITTEN = "python-written"  # functions that return, where a folder adds that language
GSM8K_ENDING = "answer = 0\n"  # how references made of GSM8K's markup end


Examined = Problem | list[Complaint]


def examine(records: Sequence[Record], language: Language) -> list[Examined]:
    """For each row its problem (with an empty id if it has none) or all complaints about it."""
    rows = [fields_of(record.fields, record.named) for record in records]
    if language.end(GSM8K_ENDING) is not None:  # else the language does not know how such a reference ends
        rows = _with_gsm8k_solutions(rows)
    stated = [(row, _problem(row)) for row in rows if isinstance(row, Fields)]
    pairs = [(problem, row.solution) for row, problem in stated if isinstance(row.solution, str)]
    traces = iter(language.trace_all(pairs))  # all at once; each row with a solution takes the next
    examined = (_examine_fields(row, problem, language, traces) for row, problem in stated)
    return [[row] if isinstance(row, Complaint) else next(examined) for row in rows]


def _with_gsm8k_solutions(rows: list[Fields | Complaint]) -> list[Fields | Complaint]:
    """Rows in GSM8K's markup get the reference that can be made of it; the others keep their answer."""
    marked = {
        index: {"question": row.question, "answer": row.gsm8k}
        for index, row in enumerate(rows)
        if isinstance(row, Fields) and row.gsm8k and row.solution is None
        # Only where the rest is as GSM8K has it: a question in words, a number after the mark.
        if isinstance(row.question, str) and not isinstance(row.answer, str)
    }
    if marked and "gsm8k" in registry.parts("layouts"):
        texts: list[str | None] = registry.part("layouts", "gsm8k")(list(marked.values()))
        for index, text in zip(marked, texts, strict=True):
            row = rows[index]
            if isinstance(row, Fields) and text is not None:
                rows[index] = replace(row, solution=text)
    return rows


def _examine_fields(row: Fields, problem: Problem, language: Language, traces: Iterator[Trace]) -> Examined:
    question_column, answer_column, solution_column = row.columns
    answer = problem.answer
    complaints = [*_id_complaints(row.id), *_question_complaints(row.question, question_column)]
    if answer is not None:
        complaints += _answer_complaints(answer, answer_column)
        complaints += [Complaint(answer_column, flaw)] if (flaw := _kind_flaw(row, problem, language)) else []
    elif row.solution is None:
        unused = f"; columns not used: {', '.join(map(str, row.others))}" if row.others else ""
        reason = f"missing, and there is no solution to compute it{unused}"
        complaints.append(Complaint(answer_column, reason))
    reference = None
    if isinstance(row.solution, str):
        trace = next(traces)
        flaws = list(_reference_complaints(trace, problem, language, solution_column))
        reference = None if row.may_fail and flaws else trace.solution
        complaints += [] if row.may_fail else flaws
        answer = trace.answer if answer is None and trace.has_answer else answer
    elif row.solution is not None:
        complaints.append(Complaint(solution_column, f"expected text, found {_shown(row.solution)}"))
    meta = _meta(row)
    if meta is None:
        complaints.append(Complaint("meta", f"expected an object, found {_shown(row.meta)}"))
    complaints += _text_complaints(meta, "meta")
    complaints += _text_complaints(row.context, "context")
    if complaints:
        return complaints
    return Problem(problem.id, problem.question, answer, reference, meta, problem.context)


def _problem(row: Fields) -> Problem:
    """The problem that a row states, as far as it is to be solved."""
    row_id = "" if row.id is None else str(row.id)
    return Problem(row_id, row.question, _normal(row.answer), context=row.context)


def _kind_flaw(row: Fields, problem: Problem, language: Language) -> str | None:
    """Whether a row has tests exactly where tests are run."""
    flaw = language.flaw(problem)
    if row.has_tests and flaw is None and tests_of(problem, language) is None:
        return "a list of tests, which only `language: python-tests` runs (here: --language python-tests)"
    return flaw


def _id_complaints(value: Any) -> Iterator[Complaint]:
    is_number = isinstance(_normal(value), int) and value is not True and value is not False
    if value is None or is_number or (isinstance(value, str) and value.strip() and _is_whole(value)):
        return
    yield Complaint("id", f"expected text or a whole number, found {_shown(value)}")


def _question_complaints(value: Any, column: str) -> Iterator[Complaint]:
    if not isinstance(value, str):
        yield Complaint(column, f"expected the text of a question, found {_shown(value)}")
    elif not value.strip():
        yield Complaint(column, "the question is empty")
    elif not _is_whole(value):
        yield Complaint(column, "not valid UTF-8 text")


def _answer_complaints(value: Any, column: str, depth: int = 0) -> Iterator[Complaint]:
    """A plain value is a finite number, a truth value, text, or a list or object of these."""
    if depth > DEEPEST:
        yield Complaint(column, f"nested more than {DEEPEST} deep")
        return
    match value:
        case bool() | int():
            return
        case None if depth:  # a cell of a table
            return
        case float():
            if not math.isfinite(value):
                yield Complaint(column, f"{_shown(value)} is not a number to compare with")
        case str():
            if not (value.strip() or depth) or not _is_whole(value):
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
    elif isinstance(value, str) and not _is_whole(value):
        yield Complaint(column, f"not valid UTF-8 text: {_shown(value)}")
    elif isinstance(value, Mapping | list | tuple):
        for item in (*value.keys(), *value.values()) if isinstance(value, Mapping) else value:
            yield from _text_complaints(item, column, depth + 1)


def _is_whole(text: str) -> bool:
    """Whether a file can hold `text`: it has no halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reference_complaints(
    trace: Trace, problem: Problem, language: Language, column: str
) -> Iterator[Complaint]:
    if problem.answer is None and trace.has_answer:
        yield from _answer_complaints(trace.answer, column)
    elif (flaw := flaw_of(problem, trace, language)) is not None:
        yield Complaint(column, flaw + _other_language(trace, language))


def _other_language(trace: Trace, language: Language) -> str:
    """A hint for programs that return their answer instead of assigning it."""
    is_other = settings_of(language)["language"] == "python" and WRITTEN in registry.parts("languages")
    returns = trace.failure is None and not trace.has_answer and "return " in trace.solution.text
    return f"; it returns: --language {WRITTEN}?" if is_other and returns else ""


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
        case bool() | int() | float() | str() | None:
            return value
        case Integral():
            return int(value)
        case Decimal() | Fraction() | Real():
            number = float(value)
            return int(number) if number.is_integer() else number
    return value


def _shown(value: Any) -> str:
    return "nothing" if value is None else shown(value)
