"""A trace is what running a solution leaves behind: the paper's T(y), one state per executed step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from partway import registry
from partway.solution import Solution
from straightline import Changed, Failure, State


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
