"""Python text to traces: parse, choose the room, run, and say what state each step reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from partway.execution.arithmetic import NotCovered
from partway.execution.interpreter import interpret
from partway.execution.memo import Key, Memo
from partway.execution.traces import Execution, Failure, Trace
from partway.execution.values import State, StateMode, canonical, state_of, strict
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
    states = _states(execution.changes, mode)
    outcome = _outcome(execution.changes, answer_variable)
    return Trace(Solution(steps), states, execution.changes, failure, outcome, isolated=True)


def _outcome(changes: Sequence[Changed], answer_variable: str) -> tuple[Any] | None:
    """The answer: the step that sets it is the last one that runs."""
    return changes[-1].get(answer_variable) if changes else None


def _syntax_failure(parsed: Parsed) -> Failure | None:
    if parsed.error is None:
        return None
    message = f"SyntaxError: {parsed.error} (line {parsed.line}, column {parsed.column})"
    return Failure("error", message, len(parsed.statements))


def _states(changes: Sequence[Changed], mode: StateMode) -> tuple[State, ...]:
    spell = strict if mode == "strict" else canonical
    texts: dict[str, str] = {}
    states = []
    for changed in changes:
        for name, value in changed.items():
            if value is None:
                texts.pop(name, None)
            else:
                texts[name] = spell(value[0])
        states.append(state_of(texts.values(), mode))
    return tuple(states)
