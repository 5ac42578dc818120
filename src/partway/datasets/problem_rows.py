"""A problem as a row of JSON and back: the one spelling that data files and run directories share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from partway.datasets.spellings import plain_answer
from partway.errors import ProblemError
from partway.problem import Problem
from partway.solution import Solution


def problem_row(problem: Problem) -> dict[str, Any]:
    """The row of a problem.

    >>> problem_row(Problem("bus", "Which bus, as text?", "72"))["answer_type"]
    'text'
    """
    row: dict[str, Any] = {
        "id": problem.id,
        "question": problem.question,
        "answer": problem.answer,
        "solution": None if problem.reference is None else problem.reference.text,
        "meta": dict(problem.meta),
    }
    if isinstance(problem.answer, str) and plain_answer(problem.answer) != problem.answer:
        row["answer_type"] = "text"  # else whoever reads the file takes it for a number
    return row


def problem_line(problem: Problem) -> str:
    """The row as a line of a file."""
    try:
        line = json.dumps(problem_row(problem), ensure_ascii=False, allow_nan=False, default=_as_float)
        line.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ProblemError(f"problem {problem.id!r} cannot be written as JSON: {error}") from None
    return f"{line}\n"


def _as_float(number: Any) -> float:
    """An exact number of another kind than JSON has; answers are compared with a tolerance anyway."""
    if isinstance(number, Decimal | Fraction):
        return float(number)
    raise TypeError(f"{type(number).__name__} is no plain value")


def problem_of(row: Mapping[str, Any], parse: Callable[[str], Solution]) -> Problem:
    """The problem that `problem_row` wrote; its answer is taken as it stands, text as text.

    `parse` reads the reference, because where it ends depends on what a program's answer is.
    """
    text = row.get("solution")
    reference = parse(text) if text is not None else None
    return Problem(str(row["id"]), row["question"], row["answer"], reference, row.get("meta"))
