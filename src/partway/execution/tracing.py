"""Python text to traces: parse, choose the room, run, and say what state each step reached.

Known programs are not run again: the memo from texts to traces is bounded in bytes.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from partway import parsing
from partway.caching import BoundedCache
from partway.execution import interpreter
from partway.execution.arithmetic import NotCovered
from partway.execution.interpreter import interpret, trace_plain
from partway.execution.traces import Changed, Execution, Failure, OneEach, Trace
from partway.execution.values import TOO_LARGE, StateMode, canonical, printable, states_of
from partway.parsing import Parsed, parse
from partway.solution import EMPTY, Solution

MAX_BYTES = 128 << 20
MAX_TRACE_BYTES = 256 << 10  # a larger one is cheaper to make again than to keep
STEP_BYTES = 450  # the objects around one step's text, state and number


def trace_texts(texts: Sequence[str], state: StateMode, answer_variable: str) -> list[Trace]:
    """The traces of many texts, in order; what the isolated workers have to run they run in one batch."""
    memo = _memos[state, answer_variable]
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
    from partway.execution.workers import run_isolated  # the first general program starts the pool

    steps = [parsed.steps for parsed in programs.values()]
    executions = run_isolated(steps, answer_variable=answer_variable)
    traces = {}
    for (text, parsed), execution in zip(programs.items(), executions, strict=True):
        try:
            traces[text] = _executed(parsed, execution, state, answer_variable, isolated=True)
        except (MemoryError, RecursionError) as error:
            traces[text] = _given_up(error)
    return traces


def confirmed(found: Trace, state: StateMode, answer_variable: str) -> bool:
    """Whether a program that an isolated worker ran takes the same states and answer when it runs again.

    It runs in a fresh process of a worker with another layout: other addresses, other hash seeds, another
    recorder. A program whose trace hangs on any of these is no solution, whether by accident or by intent.
    What was interpreted here needs no second opinion.
    """
    if not found.isolated:
        return True
    from partway.execution.workers import run_isolated

    (again,) = run_isolated([found.solution.steps], answer_variable=answer_variable, second=True)
    if states_of(again.changes, state)[: len(found.states)] != found.states:
        return False
    outcome = _outcome(again.changes, answer_variable)
    return not found.has_answer or (outcome is not None and canonical(outcome[0]) == canonical(found.answer))


def forget() -> None:
    """Drop what is remembered of earlier programs."""
    _memos.clear()


def forget_lines() -> None:
    """Drop what is remembered of earlier lines."""
    interpreter.known_lines.clear()
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
    message = f"SyntaxError: {printable(parsed.error)} (line {parsed.line}, column {parsed.column})"
    return Failure("error", message, len(parsed.statements))


class Memo:
    """Traces of earlier programs, by their text."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._traces = BoundedCache[str, Trace](max_bytes, size_of, MAX_TRACE_BYTES)
        self.recall = self._traces.get  # the trace of a program, if it is still known

    def remember(self, found: Mapping[str, Trace]) -> None:
        """Keep traces; not of what ran out of time or memory, which may not happen again."""
        put = self._traces.put
        for text, trace in found.items():
            if trace.failure is None:
                put(text, trace)
                # A data set's spelling is read once; from then on its problem is known by its canonical text.
                if (spelled := "\n".join(trace.solution.steps)) != text.rstrip("\n"):
                    put(spelled, trace)
            elif trace.failure.kind in ("error", "forbidden"):
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
