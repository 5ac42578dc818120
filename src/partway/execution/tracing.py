"""Python text to traces: parse, choose the room, run, and say what state each step reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from partway.execution.arithmetic import NotCovered
from partway.execution.interpreter import interpret
from partway.execution.memo import Key, Memo
from partway.execution.states import TOO_LARGE, states_of
from partway.execution.traces import Execution, Failure, Trace
from partway.execution.values import StateMode, canonical
from partway.parsing import Parsed, parse
from partway.solution import Solution

Changed: TypeAlias = Mapping[str, tuple[Any] | None]
_memo = Memo()


def trace_texts(texts: Sequence[str], state: StateMode, answer_variable: str) -> list[Trace]:
    """The traces of many texts, in order; what the isolated workers have to run they run in one batch."""
    keys: list[Key] = [(text, state, answer_variable) for text in texts]
    traces: dict[Key, Trace] = {}
    general: dict[Key, Parsed] = {}
    for key in keys:
        if key in traces or key in general:
            continue
        known = _memo.recall(key)
        if known is not None:
            traces[key] = known
            continue
        parsed = parse(key[0], answer_variable)
        try:
            traces[key] = interpreted(parsed, state, answer_variable)
            _memo.remember(key, traces[key])
        except NotCovered:
            general[key] = parsed
    executions: list[Execution] = []
    if general:
        from partway.execution.workers import run_isolated  # the first general program starts the pool

        programs = [parsed.steps for parsed in general.values()]
        executions = run_isolated(programs, answer_variable=answer_variable)
    for (key, parsed), execution in zip(general.items(), executions, strict=True):
        traces[key] = _executed(parsed, execution, state, answer_variable)
        _memo.remember(key, traces[key])
    return [traces[key] for key in keys]


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
    _memo.forget()


def interpreted(parsed: Parsed, mode: StateMode, answer_variable: str) -> Trace:
    """The trace of a program the interpreter covers; NotCovered if it does not."""
    seen = interpret(parsed.statements, mode)
    failure = seen.failure or _syntax_failure(parsed)
    changes = tuple(seen.changes)
    return Trace(
        Solution(parsed.steps), tuple(seen.states), changes, failure, _outcome(changes, answer_variable)
    )


def _executed(parsed: Parsed, execution: Execution, mode: StateMode, answer_variable: str) -> Trace:
    steps, failure = parsed.steps, execution.failure
    if failure is None and len(execution.changes) < len(steps):
        steps = steps[: len(execution.changes)]  # a compound statement bound the answer
    elif failure is None:
        failure = _syntax_failure(parsed)
    states = states_of(execution.changes, mode)
    changes = execution.changes[: len(states)]
    if len(changes) < len(execution.changes):
        steps, failure = parsed.steps, Failure("memory", TOO_LARGE, len(states))
    return Trace(Solution(steps), states, changes, failure, _outcome(changes, answer_variable), isolated=True)


def _outcome(changes: Sequence[Changed], answer_variable: str) -> tuple[Any] | None:
    """The answer: the step that sets it is the last one that runs."""
    return changes[-1].get(answer_variable) if changes else None


def _syntax_failure(parsed: Parsed) -> Failure | None:
    if parsed.error is None:
        return None
    message = f"SyntaxError: {parsed.error} (line {parsed.line}, column {parsed.column})"
    return Failure("error", message, len(parsed.statements))
