"""The result of a program: what each step changed, and why it stopped early.

Its process and the worker say so, and are believed only after what they say was checked.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from stepbox.wire import TOO_LARGE, Decoder, TooMuchWork, WireError, decode_line, printable

MAX_MESSAGE = 1_000

Changed: TypeAlias = Mapping[str, tuple[Any] | None]  # what a step set a variable to; None: removed it
FailureKind = Literal["error", "timeout", "memory", "forbidden"]


class BoxError(Exception):
    """No program can be run here; the message says why. What a program does wrong is a `Failure`."""


class WeakBox(BoxError):
    """The kernel would not stop a program that gets past the screen, and the caller has not accepted that."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a program stopped early; `step` is the index of the step that failed, so `step` steps ran."""

    kind: FailureKind
    message: str
    step: int
    # Not if its process, or a worker, died without a word.
    is_own: bool = field(default=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Execution:
    """What each executed step changed, the failure, if any, and the most memory that its process held.

    Modules, functions and classes are not values and never appear.
    """

    changes: Sequence[Changed]
    failure: Failure | None = None
    peak_bytes: int = field(default=0, compare=False)

    @property
    def variables(self) -> dict[str, Any]:
        """Names and values after the last executed step."""
        held = {name: value for changed in self.changes for name, value in changed.items()}
        return {name: value[0] for name, value in held.items() if value is not None}


_KINDS: dict[str, FailureKind] = {kind: kind for kind in get_args(FailureKind)}


def read_reply(record: bytes, ending: bytes, length: int, until: str) -> Execution:
    """The execution of a program of `length` steps, a failure if anything about it is malformed.

    `record` is what the program's process wrote, a line per step and one for the outcome; `ending` is what
    the worker saw of that process: `null` if it ended by itself, else the kind and message of a failure.
    """
    *lines, last = record.split(b"\n")
    changes: list[dict[str, tuple[Any] | None]] = []
    try:
        if len(lines) > length:
            raise WireError("more states than steps")
        decoder = Decoder()  # one budget of work for all lines
        seen: dict[bytes, Any] = {}
        changes.extend(_read_changes(decode_line(line), decoder, seen) for line in lines)  # until an error
        outcome = decode_line(ending)
        if is_own := outcome is None:  # only then is the process's own last word complete
            outcome = decode_line(last)
        failure = read_failure(outcome, len(lines), is_own=is_own)
        if failure is not None and failure.step >= length:
            raise WireError("a failure after the last step")
        if failure is None and len(lines) < length and not (lines and changes[-1].get(until)):
            raise WireError("an early end without a reason")
    except WireError as error:
        return Execution((), Failure("error", f"the worker's reply was refused: {error}", 0, is_own=False))
    except TooMuchWork:
        failure = Failure("memory", TOO_LARGE, len(changes))
    return Execution(tuple(changes), failure)


def _read_changes(line: Any, decoder: Decoder, seen: dict[bytes, Any]) -> dict[str, tuple[Any] | None]:
    match line:
        case [dict() as changed, list() as gone]:
            changes: dict[str, tuple[Any] | None] = {
                _name(name): (_decoded(value, decoder, seen),) for name, value in changed.items()
            }
            decoder.spend(len(gone))
            changes.update((_name(name), None) for name in gone)
            return changes
    raise WireError("a line without changes")


def _decoded(encoded: Any, decoder: Decoder, seen: dict[bytes, Any]) -> Any:
    """The value; one that came before, under any name, is not rebuilt."""
    if type(encoded) not in (list, dict):
        return decoder.decode(encoded)
    text = marshal.dumps(encoded, 2)  # without references: equal for equal contents
    if text not in seen:
        seen[text] = decoder.decode(encoded)
    return seen[text]


def read_failure(line: Any, step: int, *, is_own: bool = True) -> Failure | None:
    """The failure that a kind and a message say; None for None."""
    match line:
        case None:
            return None
        case [str() as kind, str() as message] if kind in _KINDS:
            # Cut twice: what is spelled out gets longer.
            return Failure(_KINDS[kind], printable(message[:MAX_MESSAGE])[:MAX_MESSAGE], step, is_own)
    raise WireError("no failure and no success")


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise WireError("a variable without a name")
    return name
