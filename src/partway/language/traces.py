"""What running a solution leaves behind: the paper's T(y), one state per executed step."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, overload

from partway import registry
from partway.errors import clipped
from partway.language.values import State, spelled
from partway.solution import Solution

if TYPE_CHECKING:
    from partway.language.language import Language

Changed: TypeAlias = Mapping[str, tuple[Any] | None]  # what a step set a variable to; None: removed it
FailureKind = Literal["error", "timeout", "memory", "forbidden"]
MAX_VALUES = 100  # of a state that is shown


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a solution stopped early; `step` is the index of the step that failed, so `step` steps ran."""

    kind: FailureKind
    message: str
    step: int
    # Not if what ran the program died without a word.
    is_own: bool = field(default=True, compare=False, repr=False)


class Execution(NamedTuple):  # as below: quicker to make than a dataclass
    """What a room reports: what each executed step changed, and the failure.

    Modules, functions and classes are not values and never appear.
    """

    changes: Sequence[Changed]
    failure: Failure | None = None


class OneEach(Sequence[Changed]):
    """The changes of steps that each set one new variable: a view of the variables, in that order.

    >>> OneEach({"n0": 10, "answer": 20})
    ({'n0': (10,)}, {'answer': (20,)})
    """

    __slots__ = ("_variables",)

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self._variables = variables

    @overload
    def __getitem__(self, index: int) -> Changed: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Changed]: ...
    def __getitem__(self, index: int | slice) -> Changed | Sequence[Changed]:
        return tuple(self)[index]

    def __iter__(self) -> Iterator[Changed]:
        return ({name: (value,)} for name, value in self._variables.items())

    def __len__(self) -> int:
        return len(self._variables)

    def __eq__(self, other: object) -> bool:
        # As good as a tuple of the same changes: which room made a trace must not show.
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self._variables))

    def __repr__(self) -> str:
        return repr(tuple(self))


class Trace(NamedTuple):  # not a dataclass: a frozen one takes a microsecond longer to make
    """A solution with the state after each executed step and the failure, if any.

    `solution` holds every step that parsed, also those after the failure. `outcome` is `(answer,)` if the
    last step gave one.
    """

    solution: Solution
    states: tuple[State, ...]
    changes: Sequence[Changed]
    failure: Failure | None = None
    outcome: tuple[Any] | None = None
    isolated: bool = False  # reported by an isolated worker, whose word a program might have forged

    @property
    def variables(self) -> dict[str, Any]:
        """Names and values after the last executed step."""
        return self.variables_after(len(self.states))

    def variables_after(self, length: int) -> dict[str, Any]:
        """Names and values after the first `length` steps."""
        variables: dict[str, Any] = {}
        for changes in self.changes[:length]:
            for name, value in changes.items():
                if value is None:
                    variables.pop(name, None)
                else:
                    variables[name] = value[0]
        return variables

    @property
    def has_answer(self) -> bool:
        """Whether the last executed step gave an answer and nothing failed."""
        return self.failure is None and self.outcome is not None

    @property
    def answer(self) -> Any:
        """What the solution answers, None if nothing."""
        return None if self.outcome is None else self.outcome[0]

    def prefixes(self) -> Iterator[tuple[Solution, State]]:
        """Every executed prefix with the state it reaches, shortest first."""
        for length, state in enumerate(self.states, 1):
            yield self.solution.prefix(length), state

    def _repr_html_(self) -> str | None:
        """The trace as a notebook shows it: each step with the state it reaches."""
        return registry.view("trace", self)


def values_by_step(trace: Trace, language: Language) -> Iterator[list[tuple[str, bool]]]:
    """For every executed step the values of the state after it, numbers by size, and whether it set each.

    >>> from partway.language import PYTHON, trace
    >>> list(values_by_step(trace("n0 = 10\\nt0 = n0 - 7.0"), PYTHON))
    [[('10', True)], [('3', True), ('10', False)]]
    """
    held: dict[str, str] = {}  # names and the texts of their values
    counts: Counter[str] = Counter()
    ordered: list[_Place] = []  # kept in order: to sort anew after every step would take long
    is_set = language.state == "set"
    for changes in trace.changes:
        for name, value in changes.items():
            if (old := held.pop(name, None)) is not None:
                counts[old] -= 1
                if not is_set or counts[old] == 0:
                    del ordered[bisect_left(ordered, _place(old, "" if is_set else name))]
            if value is not None:
                text = held[name] = spelled(value[0], language.state)
                counts[text] += 1
                if not is_set or counts[text] == 1:
                    insort(ordered, _place(text, "" if is_set else name))
        fresh = {held[name] for name in changes if name in held} if is_set else set()
        # As much as a reader can take in: what a program computes has no bound.
        shown = [(clipped(text), name in changes or text in fresh) for *_, text, name in ordered[:MAX_VALUES]]
        others = len(ordered) - len(shown)
        yield [*shown, (f"and {others:,} more", False)] if others else shown


_Place = tuple[bool, float, str, str]


def _place(text: str, name: str) -> _Place:
    """Where a value stands in a state: numbers by size, then other texts."""
    try:
        size = float(text)
    except ValueError:
        size = math.nan
    return (True, 0.0, text, name) if math.isnan(size) else (False, size, text, name)
