"""M as a tree: a known prefix is a node, its steps are the path to the root, solutions share beginnings."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from partway.language import State
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
    def silent(self) -> set[str]:
        """Its steps that leave the state as it was: imports and definitions."""
        return {
            p.step.strip() for p in self.path() if p.state == ("" if p.parent is None else p.parent.state)
        }

    @property
    def states(self) -> tuple[State, ...]:
        return tuple(prefix.state for prefix in self.path())[::-1]


class KnownPrefixes:
    """M: every known prefix by the state it reaches."""

    __slots__ = ("_by_state",)

    def __init__(self) -> None:
        # Tuples: most states have one prefix, and there are as many states as steps in all buffers together.
        self._by_state: dict[State, tuple[Prefix, ...]] = {}

    def __contains__(self, state: object) -> bool:
        return state in self._by_state

    def items(self) -> Iterator[tuple[State, tuple[Prefix, ...]]]:
        """Every known state with the prefixes that reach it."""
        return iter(self._by_state.items())

    def all_reaching(self, state: State) -> tuple[Prefix, ...]:
        """The known prefixes that reach a state."""
        return self._by_state.get(state, ())

    def reaching(self, state: State, length: int) -> list[Prefix]:
        """The known prefixes of `length` steps that reach a state."""
        return [prefix for prefix in self._by_state.get(state, ()) if prefix.length == length]

    def shortest(self, state: State) -> int:
        """In how few steps a known state can be reached."""
        return min(prefix.length for prefix in self._by_state[state])

    def has(self, steps: Sequence[str], state: State) -> bool:
        """Whether these very steps are a known prefix."""
        return any(prefix.spells(steps) for prefix in self.reaching(state, len(steps)))

    def learn(self, steps: Sequence[str], states: Sequence[State]) -> Prefix:
        """Add all prefixes of a solution; the last one, its leaf, stands for the solution."""
        leaf: Prefix | None = None
        for step, state in zip(steps, states, strict=False):  # a kept beginning has fewer steps than states
            # The same prefix is the same object, so equality of prefixes is identity of nodes.
            peers = self._by_state.get(state, ())
            known = next((peer for peer in peers if peer.parent is leaf and peer.step == step), None)
            if known is None:
                known = Prefix(leaf, step, state)
                self._by_state[state] = (*peers, known)
            leaf = known
        assert leaf is not None, "only solutions of at least one step are kept"
        return leaf

    def keep_only(self, leaves: Iterable[Prefix]) -> None:
        """Forget every prefix that none of these solutions begins with."""
        alive = {prefix for leaf in leaves for prefix in leaf.path()}
        left = ((state, tuple(p for p in prefixes if p in alive)) for state, prefixes in self.items())
        self._by_state = {state: prefixes for state, prefixes in left if prefixes}
