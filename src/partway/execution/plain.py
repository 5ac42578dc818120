"""The usual program in as few operations as can be: lines of plain arithmetic, a new variable in each.

A short way to what the interpreter says of such a program, and of no other: whatever is unusual (another
statement, a failure, a variable set again, steps behind the answer, large states) is left to the interpreter.
"""

from __future__ import annotations

from bisect import insort
from typing import Any

from partway.caching import BoundedCache
from partway.execution.arithmetic import SYMBOLS, NotCovered
from partway.execution.interpreter import evaluate
from partway.execution.traces import OneEach, Trace
from partway.execution.values import State, canonical
from partway.parsing import Statement, parse_arithmetic
from partway.solution import Solution

MAX_CHARACTERS = 1_000  # of a usual program
MAX_STATE = 2_000  # characters; 80 steps or so cannot fill more memory than the interpreter allows
MAX_CACHED_BYTES = 32 << 20


class PlainStep:
    """A line ready to run: its canonical spelling, the variable it sets, and how to know the value.

    Of a constant, the value and its canonical text are known; `left operator right` are two variables.
    """

    __slots__ = ("expression", "left", "operator", "right", "spelling", "target", "text", "value")

    def __init__(self, statement: Statement) -> None:
        self.spelling, self.target = statement.text, statement.target
        self.expression = expression = statement.expression
        self.operator = self.text = self.value = None
        match expression:
            case int() | float():
                self.value, self.text = expression, canonical(expression)
            case (symbol, str(left), str(right)):
                self.operator, self.left, self.right = SYMBOLS[symbol], left, right


_UNUSUAL = (
    *(ArithmeticError, KeyError, MemoryError, NameError, RecursionError, TypeError, ValueError),
    NotCovered,
)
_known = BoundedCache[str, PlainStep](MAX_CACHED_BYTES, lambda line, _: 600 + 50 * len(line))


def trace_plain(text: str, answer_variable: str) -> Trace | None:
    """The trace of a usual program, its states multisets; None of any other."""
    steps = _steps(text)
    if not steps:
        return None
    variables: dict[str, Any] = {}
    texts: list[str] = []  # the canonical texts of all values, sorted
    states: list[State] = []
    try:
        for step in steps:
            spelled = step.text
            if spelled is not None:
                value = step.value
            else:
                if step.operator is not None:
                    value = step.operator(variables[step.left], variables[step.right])
                else:
                    value = evaluate(step.expression, variables)
                spelled = str(value) if type(value) is int else canonical(value)
            variables[step.target] = value
            insort(texts, spelled)
            states.append(", ".join(texts))
    except _UNUSUAL:
        return None
    if len(variables) < len(steps) or len(states[-1]) > MAX_STATE:
        return None
    if answer_variable in variables and step.target != answer_variable:
        return None
    outcome = (value,) if step.target == answer_variable else None
    solution = Solution(tuple([step.spelling for step in steps]))
    return Trace(solution, tuple(states), OneEach(variables), None, outcome)


def _steps(text: str) -> list[PlainStep] | None:
    """The steps of a text of which every line is one."""
    if len(text) > MAX_CHARACTERS:
        return None
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    known = _known.recent
    try:
        return [known[line] for line in lines]
    except KeyError:
        return _new_steps(lines)


def _new_steps(lines: list[str]) -> list[PlainStep] | None:
    steps = []
    for line in lines:
        step = _known.get(line)
        if step is None:
            statement = parse_arithmetic(line)
            if statement is None:
                return None
            step = PlainStep(statement)
            _known.put(line, step)
        steps.append(step)
    return steps


def forget_lines() -> None:
    """Drop what is remembered of earlier lines."""
    _known.clear()
