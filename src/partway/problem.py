"""A problem is what a model is asked to solve: the paper's (x, y*, z*), and its row in files and runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from partway.errors import ProblemError
from partway.solution import Solution


@dataclass(frozen=True, init=False)
class Problem:
    """A question x, its answer z* and, unless supervision is weak, a reference solution y*, also as text.

    `context` is what programs run against in some languages: a database, tests.

    >>> Problem("oil", "10 ml for each of 2 wheels?", 20, "n0 = 10\\nanswer = n0*2").reference.steps
    ('n0 = 10', 'answer = n0 * 2')
    """

    id: str
    question: str
    answer: Any
    reference: Solution | None
    meta: Mapping[str, Any] = field(compare=False)
    context: Any = field(hash=False)

    def __init__(
        self,
        id: str,
        question: str,
        answer: Any,
        reference: Solution | str | None = None,
        meta: Mapping[str, Any] | None = None,
        context: Any = None,
    ) -> None:
        if isinstance(reference, str):
            reference = Solution.parse(reference)
        # A frozen dataclass cannot assign; its own __init__ would not take a reference as text.
        given = {"id": id, "question": question, "answer": answer, "reference": reference}
        vars(self).update(given, meta=meta or {}, context=context)


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
    if problem.context is not None:
        row["context"] = problem.context
    if isinstance(problem.answer, str):
        row["answer_type"] = "text"  # else whoever reads the file may take it for a number
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
    """A Fraction or a Decimal, which JSON lacks, as a float: answers are compared with a tolerance."""
    if isinstance(number, Decimal | Fraction):
        return float(number)
    raise TypeError(f"{type(number).__name__} is not a plain value")


def problem_of(row: Mapping[str, Any], parse: Callable[[str], Solution]) -> Problem:
    """The problem that `problem_row` wrote; its answer is taken as it stands, text as text.

    `parse` reads the reference, because where it ends depends on what a program's answer is.
    """
    text = row.get("solution")
    reference = parse(text) if text else None
    return Problem(
        str(row["id"]), row["question"], row["answer"], reference, row.get("meta"), row.get("context")
    )
