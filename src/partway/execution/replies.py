"""What is said about one program, by its process and by the worker, believed only after it was checked."""

from __future__ import annotations

from typing import Any, get_args

from partway.execution.traces import Execution, Failure, FailureKind
from partway.execution.values import TOO_LARGE, printable
from partway.execution.wire import Decoder, TooMuchWork, WireError, decode_line

MAX_MESSAGE = 1_000

_KINDS: dict[str, FailureKind] = {kind: kind for kind in get_args(FailureKind)}


def read_reply(record: bytes, ending: bytes, length: int, answer_variable: str) -> Execution:
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
        changes.extend(_read_changes(decode_line(line), decoder) for line in lines)  # those before an error
        outcome = decode_line(ending)
        if outcome is None:  # only then is the process's own last word complete
            outcome = decode_line(last)
        failure = read_failure(outcome, len(lines))
        if failure is not None and failure.step >= length:
            raise WireError("a failure behind the last step")
        if failure is None and len(lines) < length and not (lines and changes[-1].get(answer_variable)):
            raise WireError("an early end without an answer")
    except WireError as error:
        return Execution((), Failure("error", f"the worker's reply was refused: {error}", 0))
    except TooMuchWork:
        failure = Failure("memory", TOO_LARGE, len(changes))
    return Execution(tuple(changes), failure)


def _read_changes(line: Any, decoder: Decoder) -> dict[str, tuple[Any] | None]:
    match line:
        case [dict() as changed, list() as gone]:
            changes: dict[str, tuple[Any] | None] = {
                _name(name): (decoder.decode(value),) for name, value in changed.items()
            }
            decoder.spend(len(gone))
            changes.update((_name(name), None) for name in gone)
            return changes
    raise WireError("a line without changes")


def read_failure(line: Any, step: int) -> Failure | None:
    """The failure that a kind and a message say; None for None."""
    match line:
        case None:
            return None
        case [str() as kind, str() as message] if kind in _KINDS:
            # Cut twice: what is spelled out gets longer.
            return Failure(_KINDS[kind], printable(message[:MAX_MESSAGE])[:MAX_MESSAGE], step)
    raise WireError("no failure and no success")


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise WireError("a variable without a name")
    return name
