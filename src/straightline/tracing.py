"""Text to trace: parse, run, and say what state each step reached."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from straightline.arithmetic import CHEAP_BITS, NotCovered, Variables
from straightline.interpreter import interpret, lowered
from straightline.parsing import Parsed, lines_of, parse
from straightline.traces import Changed, Execution, Failure, OneEach, Trace
from straightline.values import TOO_LARGE, State, StateMode, canonical_float, states_of

MAX_CHARACTERS = 1_000  # of a usual program
MAX_STATE = 2_000  # characters; 80 steps or so cannot fill more memory than a trace may
_LARGE, _SMALL = 1 << CHEAP_BITS, -(1 << CHEAP_BITS)

Room: TypeAlias = Callable[[Sequence[tuple[str, ...]]], Sequence[Execution]]  # runs programs, given as steps
_UNUSUAL = (ArithmeticError, KeyError, MemoryError, RecursionError, TypeError, ValueError, NotCovered)


def not_covered(programs: Sequence[tuple[str, ...]]) -> Sequence[Execution]:
    """The room of those who have no other."""
    raise NotCovered("more than straight-line arithmetic: " + "; ".join(programs[0])[:200])


def trace(text: str, until: str = "", state: StateMode = "multiset", elsewhere: Room = not_covered) -> Trace:
    """Run a program: one state per step up to the first that fails, and the failure, if any.

    The program ends after the first step that assigns `until`.

    >>> trace("n0 = 10\\nt0 = n0 * 2\\nanswer = t0 / 0", until="answer").states
    ('10', '10, 20')
    """
    return trace_all([text], until, state, elsewhere)[0]


def trace_all(
    texts: Iterable[str], until: str = "", state: StateMode = "multiset", elsewhere: Room = not_covered
) -> list[Trace]:
    """The traces of many programs, in order.

    What is not straight-line arithmetic goes to `elsewhere` in one batch, parsed into its steps; without
    another room it raises `NotCovered`.
    """
    found: dict[int, Trace] = {}
    others: dict[int, Parsed] = {}
    for number, text in enumerate(texts):
        if state == "multiset" and (usual := _trace_usual(text, until)) is not None:
            found[number] = usual
            continue
        try:
            parsed = parse(text, until)
            found[number] = _traced(parsed, interpret(parsed.statements), until, state)
        except NotCovered:
            others[number] = parsed
        except (MemoryError, RecursionError) as error:
            found[number] = _given_up(error)
    executions = elsewhere([parsed.steps for parsed in others.values()]) if others else ()
    for (number, parsed), execution in zip(others.items(), executions, strict=True):
        try:
            found[number] = _traced(parsed, execution, until, state)._replace(elsewhere=True)
        except (MemoryError, RecursionError) as error:
            found[number] = _given_up(error)
    return [found[number] for number in range(len(found))]


def _traced(parsed: Parsed, execution: Execution, until: str, state: StateMode) -> Trace:
    """The trace of a parsed program and its execution, with the state after each step."""
    steps, failure = parsed.steps, execution.failure
    if failure is None and _outcome(execution.changes, until) is not None:
        steps = steps[: len(execution.changes)]  # it ends here; what follows is cut, whether it parses or not
    elif failure is None:
        failure = _syntax_failure(parsed)
    states = states_of(execution.changes, state)
    changes = execution.changes[: len(states)]
    if len(changes) < len(execution.changes):
        steps, failure = parsed.steps, Failure("memory", TOO_LARGE, len(states))
    return Trace(steps, states, changes, failure, _outcome(changes, until))


def _given_up(error: BaseException) -> Trace:
    """For a program that this process, short of memory or deep in calls as it is, cannot deal with."""
    return Trace((), (), (), Failure("memory", f"{type(error).__name__} in the tracing process", 0))


def _outcome(changes: Sequence[Changed], until: str) -> tuple[Any] | None:
    """The value of the variable that ends a program: the step that sets it is the last one that runs."""
    return changes[-1].get(until) if changes else None


def _syntax_failure(parsed: Parsed) -> Failure | None:
    if parsed.error is None:
        return None
    # What a terminal would act on is spelled out: the message may quote the text.
    said = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in parsed.error)
    message = f"SyntaxError: {said} (line {parsed.line}, column {parsed.column})"
    return Failure("error", message, len(parsed.statements))


def _trace_usual(text: str, until: str) -> Trace | None:
    """The trace of a usual program, each line of which sets one new variable; None for any other.

    It is what `interpret` and `states_of` give, in as few operations as possible. Whatever is unusual (a
    failure, a variable set again, steps after the end, large states) is left to these.
    """
    statements = lines_of(text) if len(text) <= MAX_CHARACTERS else None
    if not statements:
        return None
    variables: Variables = {}
    texts: list[str] = []  # the canonical texts of all values, sorted
    states: list[State] = []
    try:
        for statement in statements:
            value = (statement.run or lowered(statement))(variables)
            variables[statement.target] = value
            if type(value) is float:
                insort(texts, canonical_float(value))
            elif _SMALL < value < _LARGE:  # a TypeError if it sets none or several
                insort(texts, str(value))
            else:
                return None
            states.append(", ".join(texts))
    except _UNUSUAL:
        return None
    if len(variables) < len(statements) or len(states[-1]) > MAX_STATE:
        return None
    if until in variables and statement.target != until:
        return None  # steps after the end are cut
    outcome = (value,) if statement.target == until else None
    steps = tuple([one.text for one in statements])  # from a list: faster than from a generator
    return Trace(steps, tuple(states), OneEach(variables), None, outcome)
