"""How a right beginning goes on: the remaining steps of a known solution, in the variables of the sample.

A known solution is right after j steps because of the values its other steps still read. A sample that holds
these values, under whatever names and beside whatever else, can be completed by those steps.
"""

from __future__ import annotations

import ast
import math
from bisect import insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from partway.execution.liveness import BUILTINS, NAME, Effects, effects_of, live_after
from partway.execution.traces import Trace
from partway.execution.values import State
from partway.parsing import parse
from partway.solution import Solution

MAX_STEPS = 128  # of a beginning that is completed: what was in scope after each of more would fill memory

Equivalence = Literal["exact", "live"]
Values = Mapping[str, str]  # variables and the texts of their values


@dataclass(frozen=True, slots=True)
class Route:
    """A solution that gives the answer, and what is live after each of its beginnings but the whole."""

    solution: Solution
    run: tuple[str, ...]  # what is run for its steps, which may be written otherwise
    states: tuple[State, ...]
    live: tuple[Values, ...]  # behind j = 1, 2, ... steps
    needs: tuple[frozenset[str], ...]  # the texts of these values


@dataclass(frozen=True, slots=True)
class Match:
    """The first `length` steps of a sample can go on as `route` does behind its first `position` steps."""

    length: int
    route: Route
    position: int


def route_of(trace: Trace, spell: Callable[[Any], str], run: tuple[str, ...] | None = None) -> Route | None:
    """What is live along a traced solution; None if that cannot be known.

    `run` are the steps that are run, where the solution is written otherwise.
    """
    run = trace.solution.steps if run is None else run
    live_names = live_after(run) if len(run) <= MAX_STEPS else None
    if live_names is None:
        return None
    live = []
    # Without the ends: nothing was computed before the first step, nothing is needed behind the last.
    for names, values in zip(live_names[1:-1], values_along(trace, spell), strict=False):
        live.append({name: values[name] for name in sorted(names) if name in values})
    needs = tuple(frozenset(values.values()) for values in live)
    return Route(trace.solution, run, trace.states, tuple(live), needs)


def values_along(trace: Trace, spell: Callable[[Any], str]) -> list[dict[str, str]]:
    """The variables after each of the first MAX_STEPS steps and the texts of their values."""
    values: dict[str, str] = {}
    along = []
    for changes in trace.changes[:MAX_STEPS]:
        for name, value in changes.items():
            if value is None:
                values.pop(name, None)
            else:
                values[name] = spell(value[0])
        along.append(dict(values))
    return along


class Ways:
    """Where a sample can go on as a known solution does: the index by live sets that stands beside M.

    Solutions of a problem need the same values at many places, so that there are far fewer sets of values to
    look at than places. Where the rest reads nothing (it is constant), and under `exact` everywhere, a place
    is found by its state.
    """

    def __init__(self, equivalence: Equivalence) -> None:
        self.equivalence = equivalence
        self._added = 0
        self._by_needs: dict[frozenset[str], list[_Way]] = {}
        self._by_state: dict[State, list[_Way]] = {}

    def add(self, route: Route, rank: int) -> None:
        """Of routes that can be joined at the same position the lowest rank goes first, then the oldest."""
        self._added += 1
        for position, needs in enumerate(route.needs, 1):
            way = (-position, rank, self._added, len(route.solution) - position, route)
            if self.equivalence == "live" and needs:
                insort(self._by_needs.setdefault(needs, []), way)
            elif state := route.states[position - 1]:
                insort(self._by_state.setdefault(state, []), way)

    def matches(
        self, trace: Trace, along: Sequence[Values], limit: int | None, beyond: int = 0
    ) -> Iterator[Match]:
        """Beginnings of more than `beyond` steps, longest first, then by the largest position.

        Completed, none is longer than `limit`.
        """
        longest = min(len(trace.states) - trace.has_answer, len(along))
        ever = frozenset(text for values in along[:longest] for text in values.values())
        possible = [entry for entry in self._by_needs.items() if entry[0] <= ever]  # most fall here
        for length in range(longest, beyond, -1):
            room = math.inf if limit is None else limit - length
            texts = frozenset(along[length - 1].values())
            ways = [way for way in self._by_state.get(trace.states[length - 1], ()) if way[3] <= room]
            for needs, several in possible:
                if needs <= texts:
                    ways += [way for way in several if way[3] <= room]
            for position, _, _, _, route in sorted(ways):
                yield Match(length, route, -position)


# -position, rank, age, steps that remain; these sort, no two are alike
_Way = tuple[int, int, int, int, Route]


def completion_of(
    beginning: Sequence[str], values: Values, match: Match, answer_variable: str
) -> tuple[str, ...] | None:
    """The remaining steps of the known solution for a matched beginning; None if names stand in the way.

    >>> from partway.execution import trace
    >>> sample, known = trace("a = 5\\nt0 = 10 * 2"), trace("n0 = 20\\nn1 = 5\\nt0 = n0 + n1\\nanswer = t0")
    >>> along = values_along(sample, str)
    >>> ways = Ways("live")
    >>> ways.add(route_of(known, str), 0)
    >>> found = next(ways.matches(sample, along, 4))
    >>> completion_of(sample.solution.steps, along[-1], found, "answer")
    ('t1 = t0 + a', 'answer = t1')
    """
    known, rest = match.route.run[: match.position], match.route.run[match.position :]
    bound = _bound(beginning)
    if bound is None or not _defines_alike(beginning, bound, known, rest):
        return None
    names = _matched(match.route.live[match.position - 1], values)
    renaming = _Renaming(names, bound, rest, answer_variable)
    steps = list(map(renaming.step, rest))
    return None if None in steps else tuple(step for step in steps if step is not None)


def _bound(steps: Sequence[str]) -> frozenset[str] | None:
    """Every name that steps may bind, also those of modules and functions."""
    effects = [effects_of(step) for step in steps]
    if None in effects:
        return None
    return frozenset(name for one in effects if one is not None for name in one.binds)


def _defines_alike(
    beginning: Sequence[str], bound: frozenset[str], known: Sequence[str], rest: Sequence[str]
) -> bool:
    """Whether modules and functions that the rest reads are the same ones in the sample's beginning."""
    live = live_after(rest)
    assert live is not None, "a route is made of solutions whose effects are known"
    defining = [(step, effects) for step in known if (effects := effects_of(step)) and not effects.reads]
    for name in live[0]:
        if name in BUILTINS and name in bound and not any(name in e.binds for _, e in defining):
            return False
        makers = [step for step, effects in defining if name in effects.binds and _is_definition(step)]
        if makers and makers[-1] not in beginning:
            return False
    return True


def _is_definition(step: str) -> bool:
    return step.startswith(("import ", "from ", "def "))


def _matched(live: Values, values: Values) -> dict[str, str]:
    """For each live variable one of the sample's that holds its value: its namesake, else one of its own."""
    # Namesakes first, so that no other variable takes the name that one of them needs.
    names = {name: name for name, text in live.items() if values.get(name) == text}
    for name, text in live.items():
        if name not in names:
            holders = [holder for holder, held in values.items() if held == text]
            unused = [holder for holder in holders if holder not in names.values()]
            names[name] = (unused or holders)[0] if holders else name
    return names


class _Renaming:
    """Steps of one solution, one after the other, in the variables of another."""

    def __init__(
        self, names: dict[str, str], taken: frozenset[str], steps: Sequence[str], answer_variable: str
    ) -> None:
        self.names = names  # what each variable is called by now
        self.taken = taken
        self.answer_variable = answer_variable
        self.mentioned = {word for step in steps for word in NAME.findall(step)}

    def step(self, step: str) -> str | None:
        """The step with its variables renamed; None if it cannot be said in these names."""
        (statement,) = parse(step, "").statements
        if statement.node is None:
            # The right side first: it reads what variables were called before this step.
            right = NAME.sub(lambda word: self.names.get(word[0], word[0]), step[len(statement.target) :])
            return f"{self._assigned(statement.target)}{right}"
        effects = effects_of(step)
        assert effects is not None, "a route is made of solutions whose effects are known"
        if _is_definition(step):
            self.names |= {name: name for name in effects.binds}
            return step
        if isinstance(statement.node, ast.Assign) and effects.writes == effects.binds:
            reading = dict(self.names)
            writing = {name: self._assigned(name) for name in sorted(effects.writes)}
            return _renamed(step, reading, writing)
        return self._in_place(step, effects)

    def _in_place(self, step: str, effects: Effects) -> str | None:
        """A step that may read and write the same variable: it has one name throughout."""
        for name in sorted(effects.binds):
            misses_answer = name == self.answer_variable and self.names.get(name, name) != name
            if name in self.names and (self._is_shared(name) or misses_answer):
                return None
            if name not in self.names:
                self.names[name] = self._assigned(name)
        return _renamed(step, self.names, self.names)

    def _is_shared(self, name: str) -> bool:
        return list(self.names.values()).count(self.names[name]) > 1

    def _assigned(self, name: str) -> str:
        """What a variable is called once it is assigned: its old name, its own, or a fresh one."""
        if name != self.answer_variable and not (name in self.names and not self._is_shared(name)):
            in_use = self.taken | set(self.names.values())
            self.names[name] = name if name not in in_use else _fresh(name, in_use | self.mentioned)
        elif name == self.answer_variable:
            self.names[name] = name
        return self.names[name]


def _fresh(name: str, in_use: set[str] | frozenset[str]) -> str:
    """The next name of the same kind: t0, t1, t2, ..."""
    stem = name.rstrip("0123456789")
    # One of so many must be free.
    return next(new for n in range(len(in_use) + 1) if (new := f"{stem}{n}") not in in_use)


def _renamed(step: str, reading: Mapping[str, str], writing: Mapping[str, str]) -> str:
    (node,) = ast.parse(step).body
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            names = reading if isinstance(inner.ctx, ast.Load) else writing
            inner.id = names.get(inner.id, inner.id)
        elif isinstance(inner, ast.arg):
            inner.arg = reading.get(inner.arg, inner.arg)
    return ast.unparse(node)
