"""A problem is what a model is asked to solve: the paper's (x, y*, z*)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from partway.solution import Solution


@dataclass(frozen=True)
class Problem:
    """A question x, its answer z* and, unless supervision is weak, a reference solution y*.

    >>> Problem("oil", "10 ml for each of 2 wheels?", 20, "n0 = 10\\nanswer = n0*2").reference.steps
    ('n0 = 10', 'answer = n0 * 2')
    """

    id: str
    question: str
    answer: Any
    reference: Solution | None = None
    meta: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.reference, str):
            object.__setattr__(self, "reference", Solution.parse(self.reference))
