"""Files of problems: one writer, one reader, and a check that reports everything wrong with a file.

The reader takes the layouts of `layouts` from whatever `sources` reads. Every reference it returns has been
run and gives the problem's answer.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice

from partway.datasets.column_layouts import Complaint
from partway.datasets.columns import Columns, renamed
from partway.datasets.examination import Examined, examine
from partway.datasets.problem_rows import problem_line
from partway.datasets.records import BadRow, Record
from partway.datasets.sources import ProblemSource, name_of, records_of
from partway.errors import ProblemError
from partway.execution import PYTHON, Programs
from partway.files import atomic_writer
from partway.problem import Problem

ROWS_AT_ONCE = 1000  # references are run together, but not all of a large file are held


@dataclass(frozen=True)
class Checked:
    """The usable problems of a source and what is wrong with its other rows, in the order of the rows."""

    problems: list[Problem]
    bad_rows: list[BadRow]


def load_problems(
    source: ProblemSource, *, programs: Programs = PYTHON, columns: Columns | None = None
) -> list[Problem]:
    """The problems of a file, a data set of the Hub, a pandas or Hugging Face table, or a list of dicts.

    `columns` says where question, answer, solution and id are, if the layout is none that is known.

    >>> load_problems([{"question": "10 ml for each of 2 wheels?", "answer": "20 "}])[0].answer
    20
    >>> load_problems([{"q": "2 and 2?", "is": 4}], columns={"question": "q", "answer": "is"})[0].answer
    4
    """
    checked = check_problems(source, programs=programs, columns=columns)
    if checked.bad_rows:
        first, others = checked.bad_rows[0], len(checked.bad_rows) - 1
        more = f" (and {others} more)" if others else ""
        see = (
            f"partway data check {first.file}" if isinstance(source, str | os.PathLike) else "check_problems"
        )
        raise ProblemError(f"{first}{more}; see everything with: {see}")
    return checked.problems


def check_problems(
    source: ProblemSource, *, programs: Programs = PYTHON, columns: Columns | None = None
) -> Checked:
    """Everything that `load_problems` would return or complain about."""
    name = name_of(source)
    records = records_of(source)
    if columns:
        records = renamed(records, columns, name)
    checked, ids = Checked([], []), _Ids()
    while chunk := list(islice(records, ROWS_AT_ONCE)):
        examined = iter(examine([row for row in chunk if isinstance(row, Record)], programs))
        for row in chunk:
            if isinstance(row, BadRow):
                checked.bad_rows.append(row)
                continue
            identified = ids.identify(next(examined), row.line)
            if isinstance(identified, Problem):
                checked.problems.append(identified)
            else:
                checked.bad_rows.extend(
                    BadRow(name, row.line, complaint.field, complaint.reason, row.item)
                    for complaint in identified
                )
    if not checked.problems and not checked.bad_rows:
        raise ProblemError(f"{name}: there are no problems in it, the source is empty")
    return checked


def write_problems(path: str | os.PathLike[str], problems: Iterable[Problem]) -> None:
    """Write problems as JSONL, whole or not at all; `load_problems` gives equal ones back."""
    with atomic_writer(path) as stream:
        for problem in problems:
            stream.write(problem_line(problem))


class _Ids:
    """The ids of a source so far: no two are equal, and those that are missing are made from the content."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        self.copies: Counter[str] = Counter()

    def identify(self, examined: Examined, line: int) -> Examined:
        """The problem with its id, or the complaints about it."""
        if not isinstance(examined, Problem):
            return examined
        problem = examined if examined.id else replace(examined, id=self._made_id(examined))
        if problem.id in self.lines:
            return [Complaint("id", f"{problem.id!r} is already the id of line {self.lines[problem.id]}")]
        self.lines[problem.id] = line
        return problem

    def _made_id(self, problem: Problem) -> str:
        """The same in every file; equal rows are numbered."""
        reference = "" if problem.reference is None else problem.reference.text
        # From the content, so that adding or moving rows changes no other id.
        content = json.dumps([problem.question, problem.answer, reference])
        made = blake2b(content.encode(), digest_size=8).hexdigest()
        self.copies[made] += 1
        return made if self.copies[made] == 1 else f"{made}-{self.copies[made]}"
