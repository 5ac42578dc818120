"""Known prefixes as a tree: a prefix is a node, its text the path to the root; solutions share beginnings."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from partway.execution import State
from partway.solution import Solution


class Prefix:
    """A known prefix: the prefix before it, one more step, and the state that step reaches."""

    __slots__ = ("length", "parent", "state", "step")

    def __init__(self, parent: Prefix | None, step: str, state: State) -> None:
        self.parent = parent
        self.step = sys.intern(step)  # the same steps are in thousands of buffers
        self.state = state
        self.length: int = 1 if parent is None else parent.length + 1

    def path(self) -> Iterator[Prefix]:
        """This prefix and all its own prefixes, longest first."""
        prefix: Prefix | None = self
        while prefix is not None:
            yield prefix
            prefix = prefix.parent

    def spells(self, steps: Sequence[str]) -> bool:
        """Whether this prefix consists of exactly the first `self.length` of `steps`."""
        return all(prefix.step == steps[prefix.length - 1] for prefix in self.path())

    @property
    def solution(self) -> Solution:
        return Solution(tuple(prefix.step for prefix in self.path())[::-1])

    @property
    def states(self) -> tuple[State, ...]:
        return tuple(prefix.state for prefix in self.path())[::-1]


@dataclass(frozen=True, slots=True)
class Witness:
    """Why a beginning is right: it goes on as `solution` does behind its first `position` steps.

    `completion` are those steps in the beginning's own variables; together they were run and gave the answer.
    """

    solution: tuple[str, ...]
    position: int
    completion: tuple[str, ...]

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Witness:
        """The witness that `asdict` described."""
        return cls(tuple(row["solution"]), row["position"], tuple(row["completion"]))
