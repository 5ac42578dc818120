"""The authors' conversion of GSM8K's annotations to programs, faults included, for comparisons.

Of each line only the first annotation is read; it must hold exactly in floating point; unary signs are lost;
a solution that computes nothing (`<<50=50>>`) counts.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mathdata.gsm8k.expressions import Expression, Negative, Number, Operation
from mathdata.gsm8k.reading import parse
from mathdata.gsm8k.solutions import NoProgram, Program
from mathdata.gsm8k.tokens import tokens

OPERATORS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "**": math.pow,
}  # fmt: skip


@dataclass
class _PaperSteps:
    """Steps in the authors' spelling, made of one annotation each."""

    constants: dict[float, str] = field(default_factory=dict)
    results: dict[float, str] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)

    def add(self, expression: Expression, result: float, source: str) -> None:
        """One more step; later, its result stands for it."""
        self.steps.append(self._spelled(expression))
        self.sources.append(source)
        self.results[result] = f"t{len(self.steps) - 1}"

    def _spelled(self, expression: Expression) -> str:
        match expression:
            case Number(value):
                # The latest step with this value stands for it, whether it is meant or not.
                known = self.results.get(float(value))
                return known or self.constants.setdefault(float(value), f"n{len(self.constants)}")
            case Negative(operand):
                return self._spelled(operand)  # the sign is lost, as in the authors' code
            case Operation(sign, left, right):
                first = self._spelled(left)
                return f"({first} {sign} {self._spelled(right)})"
        raise AssertionError(f"{expression} is in no annotation")

    def program(self, question: str) -> Program:
        """Constants, then steps; the last step is the answer."""
        constants = [f"{name} = {_literal(value, question)}" for value, name in self.constants.items()]
        steps = [f"t{index} = {step}" for index, step in enumerate(self.steps[:-1])]
        return Program(
            "\n".join([*constants, *steps, f"answer = {self.steps[-1]}"]),
            ("constant",) * len(constants) + ("annotation",) * len(self.steps),
            ("",) * len(constants) + tuple(self.sources),
        )


def read_paper_program(question: str, lines: Sequence[str]) -> Program | NoProgram:
    """The program of the first annotation of every line."""
    steps = _PaperSteps()
    for line in lines:
        if "<<" not in line or ">>" not in line:
            continue
        # Only the first annotation of a line: the authors' code looks no further.
        annotation = line[line.index("<<") + 2 : line.index(">>")]
        left, _, right = annotation.partition("=")
        expression, result = parse(list(tokens(left))), parse(list(tokens(right)))
        if expression is None or result is None or _value(expression) != _value(result):
            return NoProgram("an annotation does not hold exactly", annotation)
        steps.add(expression, _value(result), annotation)
    if not steps.steps:
        return NoProgram("no annotation", "no <<...=...>> in the written solution")
    return steps.program(question)


def _value(expression: Expression) -> float:
    """The value in floating point, not a number where there is none."""
    match expression:
        case Number(value):
            return float(value)
        case Negative(operand):
            return -_value(operand)
        case Operation(sign, left, right):
            return _apply(sign, _value(left), _value(right))
    raise AssertionError(f"{expression} is in no annotation")


def _apply(sign: str, a: float, b: float) -> float:
    try:
        return OPERATORS[sign](a, b)
    except (ArithmeticError, ValueError):
        return math.nan


def _literal(value: float, question: str) -> str:
    """A whole number without decimals, unless the question spells it with them."""
    whole = math.isclose(int(value), value, abs_tol=1e-4)
    return str(int(value)) if whole and str(value) not in question else repr(value)
