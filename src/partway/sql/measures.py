"""What evaluations of queries have of their own: execution accuracy, and what chance draws."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING

from partway.problem import Problem

if TYPE_CHECKING:
    from partway.evaluation import Judged

_TEXT = re.compile(r"'((?:[^']|'')+)'")
_WORD = re.compile(r"[\w.]*\w")


def execution_accuracy(problem: Problem, samples: Sequence[Judged]) -> float:
    """A metric under the name it has in text-to-SQL: the share of samples that give the right rows."""
    drawn = sum(one.sample.count for one in samples)
    return sum(one.sample.count for one in samples if one.passed) / drawn


def with_values(problems: Sequence[Problem]) -> Callable[[str, Problem, Random], str]:
    """What puts values that a question says into a reference, where those of its own question stand.

    Values are the texts in quotes of all references.

    >>> from partway.solution import Solution
    >>> query = Solution(("SELECT r FROM t WHERE s = 'ohio' AND k = 'big'",))
    >>> ohio = Problem("o", "rivers in ohio", None, query)
    >>> york = Problem("y", "new york", None, Solution(("SELECT c FROM t WHERE s IN ('new york', 'york')",)))
    >>> with_values([ohio, york])("cities in New York?", ohio, Random(0))
    "SELECT r FROM t WHERE s = 'new york' AND k = 'big'"
    """
    texts = [problem.reference.text for problem in problems if problem.reference is not None]
    known = sorted({value for text in texts for value in _TEXT.findall(text)})

    def said(question: str) -> list[str]:
        asked = f" {' '.join(_WORD.findall(question.lower()))} "
        found = [value for value in known if f" {value.lower()} " in asked]
        return [one for one in found if not any(one != other and one in other for other in found)]

    def filled(question: str, problem: Problem, rng: Random) -> str:
        assert problem.reference is not None, "only a reference has places to fill"
        given = said(question)
        into = {value: rng.choice(given) for value in said(problem.question)} if given else {}
        return _TEXT.sub(lambda found: f"'{into.get(found[1], found[1])}'", problem.reference.text)

    return filled
