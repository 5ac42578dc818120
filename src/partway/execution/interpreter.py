"""The room in this process: straight-line arithmetic on exact ints, floats and bools.

Nothing of a program is compiled or evaluated by Python here: its statements are walked. What the walk does
not cover (`NotCovered`) goes to the isolated workers.

The usual program, lines of plain arithmetic with a new variable in each, goes a short way (`trace_plain`) in
as few operations as can be. It says what the interpreter says; whatever is unusual (another statement, a
failure, a variable set again, steps behind the answer, large states) is left to the interpreter.
"""

from __future__ import annotations

import operator
from bisect import insort
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from partway.caching import BoundedCache
from partway.execution.arithmetic import CHEAP_BITS, SYMBOLS, NotCovered
from partway.execution.lowering import Environment, Run, lookup, lower
from partway.execution.traces import Changed, Execution, Failure, OneEach, Trace
from partway.execution.values import State, canonical, canonical_float
from partway.parsing import Expression, Statement, parse_arithmetic
from partway.solution import Solution

MAX_CACHED_BYTES = 32 << 20
BYTES_PER_CHARACTER = 150  # of the functions that a statement is lowered to
MAX_CHARACTERS = 1_000  # of a usual program
MAX_STATE = 2_000  # characters; 80 steps or so cannot fill more memory than the interpreter allows
_LARGE, _SMALL = 1 << CHEAP_BITS, -(1 << CHEAP_BITS)


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
        if len(expression) == 2:  # ("neg", operand)
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
    # The recent half by itself: this is asked for every step, and mostly answered there.
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


# A line ready to run: its canonical spelling, the variable it sets, and how to know the value. A tuple, for
# all of it is looked at for every program with this line. Of a constant, value and canonical text are known;
# of `left operator right`, None stands for an operand that is the value; anything else is an expression.
_Operate: TypeAlias = Callable[[Any, Any], Any]
PlainStep: TypeAlias = tuple[str, str, str | None, Any, _Operate | None, Any, Any, Expression]


def _plain_step(statement: Statement) -> PlainStep:
    spelling, target, expression = statement.text, statement.target, statement.expression
    match expression:
        case int() | float():
            return spelling, target, canonical(expression), expression, None, None, None, 0
        case (symbol, str(left), str(right)):
            return spelling, target, None, None, _OPERATORS[symbol], left, right, 0
        case (symbol, str(left), int() | float() as right):
            return spelling, target, None, right, _OPERATORS[symbol], left, None, 0
        case (symbol, int() | float() as left, str(right)):
            return spelling, target, None, left, _OPERATORS[symbol], None, right, 0
    return spelling, target, None, None, None, None, None, expression


_OPERATORS = SYMBOLS | {"*": operator.mul}  # factors are small, and a product is looked at below
_UNUSUAL = (
    *(ArithmeticError, KeyError, MemoryError, NameError, RecursionError, TypeError, ValueError),
    NotCovered,
)
known_lines = BoundedCache[str, PlainStep](MAX_CACHED_BYTES, lambda line, _: 600 + 50 * len(line))


def trace_plain(text: str, answer_variable: str) -> Trace | None:
    """The trace of a usual program, its states multisets; None of any other."""
    steps = _steps(text)
    if not steps:
        return None
    variables: dict[str, Any] = {}
    texts: list[str] = []  # the canonical texts of all values, sorted
    states: list[State] = []
    try:
        for _, target, spelled, value, operate, left, right, expression in steps:
            if spelled is None:
                if operate is None:
                    value = evaluate(expression, variables)
                elif left is None:
                    value = operate(value, variables[right])
                elif right is None:
                    value = operate(variables[left], value)
                else:
                    value = operate(variables[left], variables[right])
                if type(value) is float:
                    spelled = canonical_float(value)
                elif _SMALL < value < _LARGE:
                    spelled = str(value)
                else:
                    return None
            variables[target] = value
            insort(texts, spelled)
            states.append(", ".join(texts))
    except _UNUSUAL:
        return None
    if len(variables) < len(steps) or len(states[-1]) > MAX_STATE:
        return None
    if answer_variable in variables and target != answer_variable:
        return None  # steps behind the answer are cut
    outcome = (value,) if target == answer_variable else None
    solution = Solution(tuple([step[0] for step in steps]))  # from a list: faster than from a generator
    return Trace(solution, tuple(states), OneEach(variables), None, outcome)


def _steps(text: str) -> list[PlainStep] | None:
    """The steps of a text of which every line is one."""
    if len(text) > MAX_CHARACTERS:
        return None
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    known = known_lines.recent
    try:
        return [known[line] for line in lines]
    except KeyError:
        return _new_steps(lines)


def _new_steps(lines: list[str]) -> list[PlainStep] | None:
    steps = []
    for line in lines:
        step = known_lines.get(line)
        if step is None:
            statement = parse_arithmetic(line)
            if statement is None:
                return None
            step = _plain_step(statement)
            known_lines.put(line, step)
        steps.append(step)
    return steps
