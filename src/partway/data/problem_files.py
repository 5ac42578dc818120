"""Reads problems from any source, checks them, and reports everything that is wrong.

The reader takes the layouts of `column_layouts` from whatever `sources` reads. Every reference it returns has
been run and gives the problem's answer.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from hashlib import blake2b
from itertools import islice

from partway.data.column_layouts import Complaint
from partway.data.columns import Columns, parse_columns, with_columns
from partway.data.examination import Examined, examine
from partway.data.records import Record
from partway.data.sources import name_of, records_of
from partway.errors import ProblemError
from partway.language import PYTHON, Language
from partway.problem import Problem
from partway.problems import BadRow, Checked, ProblemSource, collecting_later

ROWS_AT_ONCE = 1000  # references are run together, but not all of a large file are held


def check_problems(
    source: ProblemSource, *, language: Language = PYTHON, columns: str | Columns | None = None
) -> Checked:
    """Everything that `load_problems` would return or complain about."""
    name = name_of(source)
    records = records_of(source)
    if columns:
        records = with_columns(records, parse_columns(columns) if isinstance(columns, str) else columns, name)
    checked, ids = Checked([], []), _Ids()
    with collecting_later():
        while chunk := list(islice(records, ROWS_AT_ONCE)):
            examined = iter(examine([row for row in chunk if isinstance(row, Record)], language))
            for row in chunk:
                if isinstance(row, BadRow):
                    checked.bad_rows.append(row)
                    continue
                identified = ids.identify(next(examined), row.line)
                if isinstance(identified, Problem):
                    checked.problems.append(identified)
                else:
                    checked.bad_rows.extend(
                        BadRow(name, row.line, complaint.field, complaint.reason) for complaint in identified
                    )
    if not checked.problems and not checked.bad_rows:
        raise ProblemError(f"{name}: there are no problems in it, the source is empty")
    return checked


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
        said = [problem.question, problem.answer, reference]
        content = json.dumps(said if problem.context is None else [*said, problem.context])
        made = blake2b(content.encode(), digest_size=8).hexdigest()
        self.copies[made] += 1
        return made if self.copies[made] == 1 else f"{made}-{self.copies[made]}"
