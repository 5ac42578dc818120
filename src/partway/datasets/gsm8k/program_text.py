"""Steps to the text of a solution in the paper's style: n0, n1, ..., then t0, t1, ..., then answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from partway.datasets.gsm8k.expressions import (
    Expression,
    Negative,
    Number,
    Operation,
    Reference,
    Rounded,
    leaves,
)
from partway.datasets.gsm8k.steps import Step, Steps


@dataclass(frozen=True, slots=True)
class Program:
    """The text of a solution; for each of its lines the rule that made it and the text it was read from."""

    text: str
    rules: tuple[str, ...]
    sources: tuple[str, ...]
    unexplained: frozenset[Fraction] = frozenset()  # constants whose origin nobody knows
    unused: int = 0  # steps read but not needed for the answer


def program(steps: Steps, answer: int) -> Program:
    """What the answer rests on, and nothing else."""
    order = sorted(_needed(steps.steps, answer))
    names = {index: f"t{position}" for position, index in enumerate(order)} | {answer: "answer"}
    constants: dict[Fraction, str] = {}
    for index in order:
        for leaf in leaves(steps.steps[index].expression):
            if isinstance(leaf, Number):
                constants.setdefault(leaf.value, f"n{len(constants)}")
    lines: list[tuple[str, str, str]] = [
        (f"{name} = {_literal(value)}", steps.numbers.origin(value), "") for value, name in constants.items()
    ]
    for index in order:
        step = steps.steps[index]
        lines.append(
            (f"{names[index]} = {_spelled(step.expression, constants, names)}", step.rule, step.source)
        )
    if any("math." in text for text, _, _ in lines):
        lines.insert(0, ("import math", "import", ""))
    texts, rules, sources = zip(*lines, strict=True)
    unused = len(steps.steps) - len(order)
    return Program("\n".join(texts), rules, sources, steps.steps[answer].unexplained, unused)


def _needed(steps: Sequence[Step], answer: int) -> set[int]:
    needed = {answer}
    for index in range(answer, -1, -1):  # steps refer to earlier ones only: one walk back finds all
        if index in needed:
            needed |= {leaf.step for leaf in leaves(steps[index].expression) if isinstance(leaf, Reference)}
    return needed


def _spelled(expression: Expression, constants: Mapping[Fraction, str], names: Mapping[int, str]) -> str:
    match expression:
        case Number(value):
            return constants[value]
        case Reference(step):
            return names[step]
        case Negative(operand):
            return f"(-{_spelled(operand, constants, names)})"
        case Rounded(how, operand):
            function = "round" if how == "round" else f"math.{how}"
            return f"{function}({_spelled(operand, constants, names)})"
        case Operation(operator, left, right):
            return f"({_spelled(left, constants, names)} {operator} {_spelled(right, constants, names)})"
    raise AssertionError(f"{expression} was not resolved")


def _literal(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else repr(float(value))
