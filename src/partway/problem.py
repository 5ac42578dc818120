"""A problem is what a model is asked to solve: the paper's (x, y*, z*)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from partway.solution import Solution


@dataclass(frozen=True, init=False)
class Problem:
    """A question x, its answer z* and, unless supervision is weak, a reference solution y*, also as text.

    >>> Problem("oil", "10 ml for each of 2 wheels?", 20, "n0 = 10\\nanswer = n0*2").reference.steps
    ('n0 = 10', 'answer = n0 * 2')
    """

    id: str
    question: str
    answer: Any
    reference: Solution | None
    meta: Mapping[str, Any] = field(compare=False)

    def __init__(
        self,
        id: str,
        question: str,
        answer: Any,
        reference: Solution | str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(reference, str):
            reference = Solution.parse(reference)
        # A frozen dataclass cannot assign; its own __init__ would not take a reference as text.
        vars(self).update(id=id, question=question, answer=answer, reference=reference, meta=meta or {})
