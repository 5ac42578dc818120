"""The room in this process: straight-line arithmetic on exact ints, floats and bools.

Nothing of a program is compiled or evaluated by Python here: its statements are walked. What the walk does
not cover (`NotCovered`) goes to the isolated workers.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from typing import Any

from partway.caching import BoundedCache
from partway.execution.arithmetic import SYMBOLS, NotCovered
from partway.execution.lowering import Environment, Run, lookup, lower
from partway.execution.states import MAX_STATES_TEXT, states_too_large
from partway.execution.traces import Failure
from partway.execution.values import State, StateMode, canonical, strict
from partway.parsing import Expression, Statement

MAX_CACHED_BYTES = 32 << 20
BYTES_PER_CHARACTER = 150  # of the functions that a statement is lowered to


class Interpreted:
    """What the interpreter saw: states and changes of the executed steps, and the failure if any."""

    __slots__ = ("changes", "failure", "states")

    def __init__(self) -> None:
        self.states: list[State] = []
        self.changes: list[Mapping[str, tuple[Any] | None]] = []
        self.failure: Failure | None = None


def interpret(statements: Sequence[Statement], mode: StateMode) -> Interpreted:
    """Run `statements` and record the state after each; NotCovered if any reaches outside the subset."""
    spell = strict if mode == "strict" else canonical
    seen = Interpreted()
    states, changes, is_set = seen.states, seen.changes, mode == "set"
    environment: Environment = {}
    sorted_texts: list[str] = []  # the canonical texts of all values
    room = MAX_STATES_TEXT

    def assign(name: str, value: Any) -> None:
        if name in environment:
            sorted_texts.remove(spell(environment[name]))
        environment[name] = value
        insort(sorted_texts, str(value) if type(value) is int else spell(value))

    try:
        for statement in statements:
            if statement.node is None:
                value = evaluate(statement.expression, environment)
                assign(statement.target, value)
                changes.append({statement.target: (value,)})
            else:
                changed = _lowered(statement)(environment)
                for name, (value,) in changed.items():
                    assign(name, value)
                changes.append(changed)
                if not changed and states:
                    states.append(states[-1])
                    continue
            states.append(", ".join(sorted(set(sorted_texts)) if is_set else sorted_texts))
            room -= len(states[-1])
            if room < 0:
                del states[-1], changes[-1]
                raise states_too_large()
    except MemoryError as error:
        seen.failure = Failure("memory", str(error), len(states))
    except RecursionError:
        raise NotCovered from None  # a worker has a stack of its own
    except (ArithmeticError, NameError, TypeError, ValueError) as error:
        seen.failure = Failure("error", f"{type(error).__name__}: {error}", len(states))
    return seen


def evaluate(expression: Expression, environment: Environment) -> Any:
    """The value of plain arithmetic."""
    if isinstance(expression, tuple):
        if len(expression) == 2:
            return -evaluate(expression[1], environment)
        symbol, left, right = expression
        if left in environment and right in environment:  # two variables: the usual step
            return SYMBOLS[symbol](environment[left], environment[right])
        return SYMBOLS[symbol](evaluate(left, environment), evaluate(right, environment))
    if isinstance(expression, str):
        return environment[expression] if expression in environment else lookup(expression, environment)
    return expression


_runs = BoundedCache[str, Run](MAX_CACHED_BYTES, lambda text, _: 500 + BYTES_PER_CHARACTER * len(text))


def _lowered(statement: Statement) -> Run:
    """The statement as a function; remembered, also that it is not covered."""
    assert statement.node is not None, "plain arithmetic is evaluated, not lowered"
    run = _runs.recent.get(statement.text) or _runs.get(statement.text)
    if run is None:
        try:
            run = lower(statement.node)
        except (NotCovered, RecursionError):
            run = _hand_on
        _runs.put(statement.text, run)
    return run


def _hand_on(environment: Environment) -> dict[str, tuple[Any]]:
    raise NotCovered
