"""The record of a program's run: what each step changed, the state it reached, and why it stopped early."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias, overload

from straightline.values import State

Changed: TypeAlias = Mapping[str, tuple[Any] | None]  # what a step set a variable to; None: removed it
FailureKind = Literal["error", "timeout", "memory", "forbidden"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a program stopped early; `step` is the index of the step that failed, so `step` steps ran."""

    kind: FailureKind
    message: str
    step: int
    # False if whatever ran the program died without a word.
    is_own: bool = field(default=True, compare=False, repr=False)


class Execution(NamedTuple):  # as below: quicker to make than a dataclass
    """What each executed step changed, and the failure, if any.

    Modules, functions and classes are not values and never appear.
    """

    changes: Sequence[Changed]
    failure: Failure | None = None


class Trace(NamedTuple):
    """The steps of a program with the state after each executed one, and the failure, if any.

    `steps` are all that parsed, also those after the failure. `outcome` is `(value,)` if the last executed
    step set the variable with which the program ends. `elsewhere`: another room ran it.
    """

    steps: tuple[str, ...]
    states: tuple[State, ...]
    changes: Sequence[Changed]
    failure: Failure | None = None
    outcome: tuple[Any] | None = None
    elsewhere: bool = False

    @property
    def variables(self) -> dict[str, Any]:
        """Names and values after the last executed step."""
        held = {name: value for changed in self.changes for name, value in changed.items()}
        return {name: value[0] for name, value in held.items() if value is not None}


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
        # Equal to a tuple of the same changes: which way a program was run must not show.
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self._variables))

    def __repr__(self) -> str:
        return repr(tuple(self))
