"""`trace`: parse, choose the room, run, and say what state each step reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Any, TypeAlias

from partway.execution.arithmetic import NotCovered
from partway.execution.interpreter import interpret
from partway.execution.traces import Execution, Failure, Trace
from partway.execution.values import State, StateMode, canonical, state_of, strict
from partway.parsing import Parsed, parse
from partway.solution import ANSWER_VARIABLE, Solution

MAX_REMEMBERED = 65_536
MAX_REMEMBERED_ITEMS = 100  # of a text or container

_Key: TypeAlias = tuple[str, StateMode, str]
_remembered: dict[_Key, Trace] = {}


def trace(
    solution: Solution | str, *, state: StateMode = "multiset", answer_variable: str = ANSWER_VARIABLE
) -> Trace:
    """Run a solution step by step: one state per step up to the first that fails, and the failure if any.

    >>> trace("n0 = 10\\nt0 = n0 * 2\\nanswer = t0 / 0").states
    ('10', '10, 20')
    """
    return trace_all([solution], state=state, answer_variable=answer_variable)[0]


def trace_all(
    solutions: Sequence[Solution | str],
    *,
    state: StateMode = "multiset",
    answer_variable: str = ANSWER_VARIABLE,
) -> list[Trace]:
    """The traces of many solutions, in order; what the isolated workers have to run they run in one batch."""
    keys: list[_Key] = [
        (solution if isinstance(solution, str) else solution.text, state, answer_variable)
        for solution in solutions
    ]
    traces: dict[_Key, Trace] = {}
    general: dict[_Key, Parsed] = {}
    for key in keys:
        if key in traces or key in general:
            continue
        if key in _remembered:
            traces[key] = _remembered[key]
            continue
        parsed = parse(key[0], answer_variable)
        try:
            traces[key] = interpreted(parsed, state, answer_variable)
        except NotCovered:
            general[key] = parsed
    executions: list[Execution] = []
    if general:
        from partway.execution.workers import run_isolated  # the first general program starts the pool

        programs = [parsed.steps for parsed in general.values()]
        executions = run_isolated(programs, answer_variable=answer_variable)
    for (key, parsed), execution in zip(general.items(), executions, strict=True):
        traces[key] = _executed(parsed, execution, state, answer_variable)
    _remember(traces)
    return [traces[key] for key in keys]


def _remember(traces: Mapping[_Key, Trace]) -> None:
    if len(_remembered) + len(traces) > MAX_REMEMBERED:
        _remembered.clear()
    _remembered.update((key, found) for key, found in traces.items() if _is_worth_remembering(found))


def _is_worth_remembering(found: Trace) -> bool:
    """Not what ran out of time or memory, which may not happen again, nor what would fill ours."""
    if found.failure is not None and found.failure.kind not in ("error", "forbidden"):
        return False
    values = (value[0] for changed in found.changes for value in changed.values() if value is not None)
    return all(not isinstance(value, Sized) or len(value) <= MAX_REMEMBERED_ITEMS for value in values)


def forget() -> None:
    """Drop what is remembered of earlier programs."""
    _remembered.clear()


def interpreted(parsed: Parsed, mode: StateMode, answer_variable: str) -> Trace:
    """The trace of a program the interpreter covers; NotCovered if it does not."""
    seen = interpret(parsed.statements, mode)
    failure = seen.failure or _syntax_failure(parsed)
    return Trace(
        Solution(parsed.steps), tuple(seen.states), tuple(seen.changes), failure, mode, answer_variable
    )


def _executed(parsed: Parsed, execution: Execution, mode: StateMode, answer_variable: str) -> Trace:
    steps, failure = parsed.steps, execution.failure
    if failure is None and len(execution.changes) < len(steps):
        steps = steps[: len(execution.changes)]  # a compound statement bound the answer
    elif failure is None:
        failure = _syntax_failure(parsed)
    states = _states(execution.changes, mode)
    return Trace(Solution(steps), states, execution.changes, failure, mode, answer_variable)


def _syntax_failure(parsed: Parsed) -> Failure | None:
    if parsed.error is None:
        return None
    message = f"SyntaxError: {parsed.error} (line {parsed.line}, column {parsed.column})"
    return Failure("error", message, len(parsed.statements))


def _states(changes: Sequence[Mapping[str, tuple[Any] | None]], mode: StateMode) -> tuple[State, ...]:
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
