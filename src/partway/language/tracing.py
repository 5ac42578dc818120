"""Python text to traces: parse, choose the room, run, and say what state each step reached.

The interpreter is one room. What it does not cover goes to the room `isolated`, which a folder around the
method adds. Known programs are not run again: the memo from texts to traces is bounded in bytes.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from partway import parsing, registry
from partway.arithmetic import NotCovered
from partway.caching import BoundedCache
from partway.errors import SandboxError, visible
from partway.language.interpreter import interpret, trace_plain
from partway.language.traces import Changed, Execution, Failure, OneEach, Trace
from partway.language.values import TOO_LARGE, StateMode, states_of
from partway.parsing import Parsed, parse
from partway.solution import EMPTY, Solution

MAX_BYTES = 128 << 20
MAX_TRACE_BYTES = 256 << 10  # a larger one is cheaper to make again than to keep
STEP_BYTES = 450  # the objects around one step's text, state and number


class Room(Protocol):
    """Runs programs, each a tuple of steps, whatever they do."""

    def __call__(
        self, programs: Sequence[tuple[str, ...]], *, until: str, second: bool = False
    ) -> list[Execution]:
        """One execution per program, which ends after its last step or the first that binds `until`.

        A second opinion comes from other processes with another layout of memory.
        """
        ...


def _room() -> Room:
    """The room for programs that the interpreter does not cover."""
    found = registry.parts("rooms").get("isolated")
    if found is None:
        raise SandboxError(
            "a program with more than straight-line arithmetic needs the part 'sandbox'"
            + registry.missing_parts()
        )
    room: Room = found.load()
    return room


def run_isolated(programs: Sequence[tuple[str, ...]], until: str = "") -> list[Execution]:
    """One execution per program, a tuple of steps each; none is remembered."""
    return _room()(programs, until=until, second=_is_second.get())


def trace_texts(texts: Sequence[str], state: StateMode, answer_variable: str) -> list[Trace]:
    """The traces of many texts, in order; what goes to the other room goes there in one batch."""
    memo = Memo() if _is_second.get() else _memos[state, answer_variable]
    known = list(map(memo.recall, texts))
    new: dict[str, Trace] = {}
    general: dict[str, Parsed] = {}
    for text, found in zip(texts, known, strict=True):
        if found is not None or text in new or text in general:
            continue
        if state == "multiset" and (usual := trace_plain(text, answer_variable)) is not None:
            new[text] = usual
            continue
        try:
            parsed = parse(text, answer_variable)
            new[text] = interpreted(parsed, state, answer_variable)
        except NotCovered:
            general[text] = parsed
        except (MemoryError, RecursionError) as error:
            new[text] = _given_up(error)
    if general:
        new |= _run_isolated(general, state, answer_variable)
    memo.remember(new)
    return [found or new[text] for text, found in zip(texts, known, strict=True)]


def _run_isolated(programs: Mapping[str, Parsed], state: StateMode, answer_variable: str) -> dict[str, Trace]:
    executions = run_isolated([parsed.steps for parsed in programs.values()], answer_variable)
    traces = {}
    for (text, parsed), execution in zip(programs.items(), executions, strict=True):
        try:
            traces[text] = _executed(parsed, execution, state, answer_variable, isolated=True)
        except (MemoryError, RecursionError) as error:
            traces[text] = _given_up(error)
    return traces


@contextmanager
def independently() -> Iterator[None]:
    """Whatever is traced inside is run anew, by the other room in processes of another layout than usual."""
    before = _is_second.set(True)
    try:
        yield
    finally:
        _is_second.reset(before)


def forget() -> None:
    """Drop what is remembered of earlier programs."""
    _memos.clear()


def forget_lines() -> None:
    """Drop what is remembered of earlier lines."""
    parsing.known_lines.clear()


def interpreted(parsed: Parsed, mode: StateMode, answer_variable: str) -> Trace:
    """The trace of a program the interpreter covers; NotCovered if it does not."""
    return _executed(parsed, interpret(parsed.statements), mode, answer_variable, isolated=False)


def _executed(
    parsed: Parsed, execution: Execution, mode: StateMode, answer_variable: str, *, isolated: bool
) -> Trace:
    """The trace of what a room reports, with the state after each step."""
    steps, failure = parsed.steps, execution.failure
    if failure is None and _outcome(execution.changes, answer_variable) is not None:
        steps = steps[: len(execution.changes)]  # it ends here; what follows is cut, whether it parses or not
    elif failure is None:
        failure = _syntax_failure(parsed)
    states = states_of(execution.changes, mode)
    changes = execution.changes[: len(states)]
    if len(changes) < len(execution.changes):
        steps, failure = parsed.steps, Failure("memory", TOO_LARGE, len(states))
    return Trace(Solution(steps), states, changes, failure, _outcome(changes, answer_variable), isolated)


def _given_up(error: BaseException) -> Trace:
    """For a program that this process, short of memory or deep in calls as it is, cannot deal with."""
    return Trace(EMPTY, (), (), Failure("memory", f"{type(error).__name__} in the tracing process", 0))


def _outcome(changes: Sequence[Changed], answer_variable: str) -> tuple[Any] | None:
    """The answer: the step that sets it is the last one that runs."""
    return changes[-1].get(answer_variable) if changes else None


def _syntax_failure(parsed: Parsed) -> Failure | None:
    if parsed.error is None:
        return None
    message = f"SyntaxError: {visible(parsed.error, kept='')} (line {parsed.line}, column {parsed.column})"
    return Failure("error", message, len(parsed.statements))


class Memo:
    """Traces of earlier programs, by their text."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._traces = BoundedCache[str, Trace](max_bytes, size_of, MAX_TRACE_BYTES)
        self.recall = self._traces.get  # the trace of a program, if it is still known

    def remember(self, found: Mapping[str, Trace]) -> None:
        """Keep traces; not of what ran out of time or memory, or was killed: that may not happen again."""
        put = self._traces.put
        for text, trace in found.items():
            if trace.failure is None:
                put(text, trace)
                # A data set's spelling is read once; from then on its problem is known by its canonical text.
                if (spelled := "\n".join(trace.solution.steps)) != text.rstrip("\n"):
                    put(spelled, trace)
            elif trace.failure.kind in ("error", "forbidden") and trace.failure.is_own:
                put(text, trace)

    def __len__(self) -> int:
        return len(self._traces)


def size_of(text: str, found: Trace) -> int:
    """About how many bytes a trace holds; never much less than it does."""
    states = found.states
    if type(found.changes) is OneEach:  # the usual program, whose last state is its longest
        return 2 * (len(text) + len(states) * len(states[-1])) + STEP_BYTES * (1 + len(states))
    texts = len(text) + sum(map(len, states))
    if not found.isolated:
        return 2 * texts + STEP_BYTES * (1 + len(states))  # its values are plain numbers
    values = (value[0] for changed in found.changes for value in changed.values() if value is not None)
    return 4 * texts + STEP_BYTES * (1 + len(states)) + _bytes_of_all(values)


def _bytes_of_all(values: Iterable[Any]) -> int:
    """Of values and all they hold; counting ends where the sum is too large to be kept anyway."""
    total = 0
    waiting = list(values)
    while waiting and total <= MAX_TRACE_BYTES:
        value = waiting.pop()
        total += sys.getsizeof(value) + 8
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            waiting += value
    return total


_memos: defaultdict[tuple[StateMode, str], Memo] = defaultdict(Memo)  # what else decides a trace
_is_second: ContextVar[bool] = ContextVar("_is_second", default=False)  # within `independently`
