"""The room in this process: straight-line arithmetic on exact ints, floats and bools.

Nothing of a program is compiled or evaluated by Python here: its statements are walked. What the walk does
not cover (`NotCovered`) goes to the isolated workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partway.caching import BoundedCache
from partway.execution.arithmetic import SYMBOLS, NotCovered
from partway.execution.lowering import Environment, Run, lookup, lower
from partway.execution.traces import Changed, Execution, Failure
from partway.parsing import Expression, Statement

MAX_CACHED_BYTES = 32 << 20
BYTES_PER_CHARACTER = 150  # of the functions that a statement is lowered to


def interpret(statements: Sequence[Statement]) -> Execution:
    """Run `statements`; NotCovered if any reaches outside the subset."""
    environment: Environment = {}
    changes: list[Changed] = []
    failure = None
    try:
        for statement in statements:
            if statement.node is None:
                changed = {statement.target: (evaluate(statement.expression, environment),)}
            else:
                changed = _lowered(statement)(environment)
            for name, (value,) in changed.items():
                environment[name] = value
            changes.append(changed)
    except MemoryError as error:
        failure = Failure("memory", str(error), len(changes))
    except RecursionError:
        raise NotCovered from None  # a worker has a stack of its own
    except (ArithmeticError, NameError, TypeError, ValueError) as error:
        failure = Failure("error", f"{type(error).__name__}: {error}", len(changes))
    return Execution(tuple(changes), failure)


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
