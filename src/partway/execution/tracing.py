"""Python text to traces: parse, choose the room, run, and say what state each step reached."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from partway import parsing
from partway.execution import plain
from partway.execution.arithmetic import NotCovered
from partway.execution.interpreter import interpret
from partway.execution.memo import Memo
from partway.execution.plain import trace_plain
from partway.execution.traces import Changed, Execution, Failure, Trace
from partway.execution.values import TOO_LARGE, StateMode, canonical, printable, states_of
from partway.parsing import Parsed, parse
from partway.solution import EMPTY, Solution

_memos: defaultdict[tuple[StateMode, str], Memo] = defaultdict(Memo)  # what else decides a trace


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
    plain.known_lines.clear()
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
