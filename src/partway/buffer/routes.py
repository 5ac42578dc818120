"""How kept solutions reach the answer: the ways on which right beginnings of other samples are completed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from partway.buffer.prefixes import Prefix, Witness
from partway.execution import Programs, Trace
from partway.execution.completion import Equivalence, Route, Ways

Kept = Sequence[Mapping[Prefix, int]]  # the leaves of a buffer by kind: fully correct, stitched, partial


class Routes:
    """The route of every kept solution, and all of them by what they read; each made when first needed."""

    __slots__ = ("_answer", "_equivalence", "_known", "_programs", "_ways", "witnesses")

    def __init__(self, equivalence: Equivalence, programs: Programs, answer: Any) -> None:
        self._equivalence = equivalence
        self._programs = programs
        self._answer = answer
        self._known: dict[Prefix, Route | None] = {}  # None: what it reads cannot be known
        self._ways: Ways | None = None
        self.witnesses: dict[Prefix, Witness] = {}  # of partially-correct ones: what completed them

    def indexed(self, kept: Kept) -> Ways:
        """The index of all routes, made again after one of them went.

        Its order can be told from what is saved, so that a resumed run finds the same: first the
        fully-correct ones, then the stitched, then the partially-correct, each in the order of keeping.
        """
        if self._ways is None:
            self._ways = Ways(self._equivalence)
            for rank, leaves in enumerate(kept):
                for leaf in leaves:
                    if (route := self.of(leaf, kept)) is not None:
                        self._ways.add(route, rank)
        return self._ways

    def of(self, leaf: Prefix, kept: Kept) -> Route | None:
        """How a kept solution, completed if it is a beginning, reaches the answer."""
        if leaf not in self._known:
            steps = leaf.solution.steps
            if leaf in kept[-1]:  # partially correct: its way to the answer is the one that completed it
                if leaf not in self.witnesses:  # kept by rules that asked for none
                    return None
                steps += self.witnesses[leaf].completion
            self._known[leaf] = self._programs.route(self.traced("\n".join(steps)))
        return self._known[leaf]

    def learn(self, leaf: Prefix, trace: Trace, kept: Kept) -> None:
        """Let others go on as this solution, or this beginning when completed, does."""
        route = self._known[leaf] = self._programs.route(trace)
        if self._ways is not None and route is not None:
            self._ways.add(route, next(rank for rank, leaves in enumerate(kept) if leaf in leaves))

    def traced(self, text: str) -> Trace:
        """The trace of a solution made up of known parts."""
        return self._programs.entered(self._programs.trace_all([text])[0], self._answer)

    def drop(self, prefix: Prefix) -> None:
        """Forget a beginning that is not kept any more, since a longer one is."""
        self.witnesses.pop(prefix, None)
        if self._known.pop(prefix, None) is not None:
            self._ways = None  # an index cannot forget one route; it is made again when next asked

    def keep_only(self, leaves: Collection[Prefix]) -> None:
        """Forget all but these."""
        self.witnesses = {leaf: self.witnesses[leaf] for leaf in leaves if leaf in self.witnesses}
        self._known = {leaf: self._known[leaf] for leaf in leaves if leaf in self._known}
        self._ways = None
