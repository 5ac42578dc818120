"""What running a solution leaves behind: the paper's T(y), one state per executed step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from partway.execution.values import State
from partway.solution import Solution

FailureKind = Literal["error", "timeout", "memory", "forbidden"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a solution stopped early; `step` is the index of the step that failed, so `step` steps ran."""

    kind: FailureKind
    message: str
    step: int


@dataclass(frozen=True, slots=True)
class Execution:
    """What a room reports: per executed step the variables it changed (None: deleted), and the failure.

    `changes[i]` maps a name to `(value,)` if step i set it to another value, or to None if step i
    removed it. Modules, functions and classes are not values and never appear.
    """

    changes: tuple[Mapping[str, tuple[Any] | None], ...]
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """A solution with the state after each executed step and the failure, if any.

    `solution` holds every step that parsed, also those behind the failure. `outcome` is `(answer,)` if the
    last step gave one.
    """

    solution: Solution
    states: tuple[State, ...]
    changes: tuple[Mapping[str, tuple[Any] | None], ...]
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
