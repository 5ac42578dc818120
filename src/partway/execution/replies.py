"""What a worker says about one program, believed only after every part of it was checked."""

from __future__ import annotations

from typing import Any, get_args

from partway.execution.traces import Execution, Failure, FailureKind
from partway.execution.wire import WireError, decode_line, decode_value

MAX_MESSAGE = 1_000

_KINDS: dict[str, FailureKind] = {kind: kind for kind in get_args(FailureKind)}


def read_reply(payload: bytes, length: int) -> Execution:
    """The execution in a reply for a program of `length` steps, a failure if the reply is malformed."""
    *lines, last = payload.split(b"\n")
    try:
        if len(lines) > length:
            raise WireError("more states than steps")
        changes = tuple(_read_changes(decode_line(line)) for line in lines)
        return Execution(changes, _read_failure(decode_line(last), len(lines), length))
    except WireError as error:
        return Execution((), Failure("error", f"the worker's reply was refused: {error}", 0))


def _read_changes(line: Any) -> dict[str, tuple[Any] | None]:
    match line:
        case [dict() as changed, list() as gone]:
            changes: dict[str, tuple[Any] | None] = {
                _name(name): (decode_value(value),) for name, value in changed.items()
            }
            changes.update((_name(name), None) for name in gone)
            return changes
    raise WireError("a line without changes")


def _read_failure(line: Any, executed: int, length: int) -> Failure | None:
    match line:
        case None:
            return None
        case [str() as kind, str() as message, int() as step] if kind in _KINDS and step == executed < length:
            return Failure(_KINDS[kind], message[:MAX_MESSAGE], step)
    raise WireError("no failure and no success")


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise WireError("a variable without a name")
    return name
