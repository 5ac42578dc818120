"""Remarks about problems as a whole: no references, or answers that begin with a number but are text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from partway.cli.options import counted
from partway.problem import Problem

MOST_COLUMNS, MOST_ANSWERS = 8, 3  # in a message

_BEGINS_WITH_NUMBER = re.compile(r"\s*[-+$]{0,2}\.?\d", re.ASCII)


def remarks(problems: Sequence[Problem], *, has_solutions: bool = False) -> list[str]:
    """All that there is to say; `has_solutions` if the problems have some elsewhere."""
    missing = without_references(problems) if problems and not has_solutions else None
    return [remark for remark in (missing, without_number(problems)) if remark is not None]


def without_references(problems: Sequence[Problem]) -> str | None:
    """What to tell whoever wants to learn from problems none of which has a reference; None if one has."""
    if any(problem.reference is not None for problem in problems):
        return None
    unused = list(dict.fromkeys(name for problem in problems for name in problem.meta))
    named = ", ".join(unused[:MOST_COLUMNS]) + (", ..." if len(unused) > MOST_COLUMNS else "")
    columns = f"columns not used: {named}" if unused else "there are no other columns"
    return (
        f"of {counted(len(problems), 'problem')} NONE has a reference: nothing is learned until the model "
        "samples a right solution; if a column holds solutions, say so: "
        f"--columns solution=COLUMN ({columns})"
    )


def numbers_left_text(problems: Sequence[Problem]) -> list[str]:
    """Answers that begin with a number and are text all the same, so that no number a program gives is right.

    With a reference that gives this very text, it is meant.
    """
    texts = (p.answer for p in problems if isinstance(p.answer, str) and p.reference is None)
    return [text for text in texts if _BEGINS_WITH_NUMBER.match(text)]


def without_number(problems: Sequence[Problem]) -> str | None:
    """What to tell whoever has such answers, None if there are none."""
    if not (texts := numbers_left_text(problems)):
        return None
    distinct = list(dict.fromkeys(texts))
    named = ", ".join(f"{text!r:.40}" for text in distinct[:MOST_ANSWERS])
    more = ", ..." if len(distinct) > MOST_ANSWERS else ""
    return (
        f"{len(texts):,} of {len(problems):,} answers begin with a number but are text, to which no number "
        f"is equal: {named}{more}; if the number is the answer, write it alone"
    )
