"""A written solution to a program: read the claims, make steps of them, find the one that is the answer.

The program is in the paper's style: n0, n1, ..., then t0, t1, ..., then answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mathdata.gsm8k.equations import ANNOTATION, Claim, Line, annotated_claims, claims_in
from mathdata.gsm8k.explanations import QuestionNumbers
from mathdata.gsm8k.expressions import (
    HUNDRED,
    Expression,
    Negative,
    Number,
    Operation,
    Reference,
    Rounded,
    close,
    leaves,
    rounded,
    value_of,
)
from mathdata.gsm8k.letters import Unknowns
from mathdata.gsm8k.reading import parse
from mathdata.gsm8k.steps import Step, Steps, added_later
from mathdata.gsm8k.tokens import plain_spelling, tokens

_AMOUNT = r"(\d[\d,]{0,20}(?:\.\d{1,12})?)"
_PERCENT = re.compile(rf"(?<![\d.,]){_AMOUNT}\s?(?:%|percent)")
_COMPARISON = re.compile(rf"(?<![\d.,]){_AMOUNT}\s*[<>]\s*\$?{_AMOUNT}")
_PERCENT_CUE = re.compile(r"%|percent", re.IGNORECASE)
_CENTS_CUE = re.compile(r"\bcents?\b|¢", re.IGNORECASE)
_ROUNDING_CUE = re.compile(
    r"round|nearest|whole|full\b|cannot|can't|can’t|half a|need|at least|enough|only", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class WrittenSolution:
    """A question, the lines of its written solution, and the answer."""

    question: str
    lines: tuple[str, ...]
    answer: Fraction


@dataclass(frozen=True, slots=True)
class NoProgram:
    """Why no program follows from a written solution."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Program:
    """The text of a solution; for each of its lines the rule that made it and the text it was read from."""

    text: str
    rules: tuple[str, ...]
    sources: tuple[str, ...]
    unexplained: frozenset[Fraction] = frozenset()  # constants whose origin nobody knows
    unused: int = 0  # steps read but not needed for the answer


def read_program(written: WrittenSolution) -> Program | NoProgram:
    """The program that follows from a written solution.

    Annotations are read alone first. Only where they leave something open (no answer, a constant nobody
    explains, a step nobody uses) the words around them are read too.
    """
    numbers = QuestionNumbers.of(written.question)
    quick = _Reader(written, numbers, thorough=False).read()
    if isinstance(quick, Program) and not quick.unexplained and not quick.unused:
        return quick
    thorough = _Reader(written, numbers, thorough=True).read()
    programs = [result for result in (quick, thorough) if isinstance(result, Program)]
    # `min` keeps the first of equal ones: annotations are believed unless words explain more.
    return min(programs, key=lambda found: (len(found.unexplained), found.unused)) if programs else thorough


class _Reader:
    """One reading of a written solution."""

    def __init__(self, written: WrittenSolution, numbers: QuestionNumbers, thorough: bool) -> None:
        self.written = written
        self.numbers = numbers
        self.thorough = thorough
        self.body = ANNOTATION.sub("", "\n".join(written.lines))
        self.last_line = self.body.rpartition("\n")[2]

    def read(self) -> Program | NoProgram:
        unknowns = Unknowns.of(self.written.lines)
        claims = unknowns.claims(
            [claim for index in range(len(self.written.lines)) for claim in self._claims(index)]
        )
        result = self._program(claims)
        if isinstance(result, NoProgram) and unknowns.values:
            # The last resort: `x + 5` somewhere in the text, and its value in the last line.
            more = self._program([*claims, *unknowns.expressions()])
            result = more if isinstance(more, Program) else result
        return result

    def _claims(self, index: int) -> list[Claim]:
        raw = self.written.lines[index]
        found = None if self.thorough else annotated_claims(index, raw)
        return claims_in(Line.read(index, raw)) if found is None else found

    def _program(self, claims: Sequence[Claim]) -> Program | NoProgram:
        percents = (Fraction(text.replace(",", "")) for text in _PERCENT.findall(self.body))
        steps = Steps(self.numbers, frozenset(percents))
        # As they stand in the text: a step may refer to earlier ones only.
        ordered = sorted(claims, key=lambda claim: claim.place)
        results: list[tuple[int, int]] = []
        for claim, later in zip(ordered, added_later(ordered), strict=True):
            step = steps.add(claim, later)
            if step is not None and not claim.aside:
                results.append((claim.place[0], step))
        if not results:
            return NoProgram("no computation is written", "no equation in the written solution holds")
        answer = self._answer(steps, results)
        return self._failure(steps.steps[results[-1][1]].value) if answer is None else program(steps, answer)

    def _answer(self, steps: Steps, results: Sequence[tuple[int, int]]) -> int | None:
        """The step that gives the answer: the last one, one the end restates, the last one in other units."""
        line, last = results[-1]
        value = steps.steps[last].value
        if close(value, self.written.answer):
            return last
        if self._is_restated(line):  # the end goes back to an earlier result
            for _, step in reversed(results):
                if close(steps.steps[step].value, self.written.answer):
                    return step
        # Dollars computed and cents asked for, or a share computed and a percentage asked for.
        if close(value * 100, self.written.answer) and (rule := self._hundred_rule()):
            return steps.append(Operation("*", Reference(last), HUNDRED), rule, self.last_line)
        if how := self._rounding(value, line):
            return steps.append(Rounded(how, Reference(last)), "rounding", self.last_line)
        return None

    def _is_restated(self, line: int) -> bool:
        """Whether a line after `line` repeats the answer: `<<250=250>>`, or `50 < 52` with 50 computed."""
        answer = self.written.answer
        later = "\n".join(self.written.lines[line + 1 :])
        sides = [annotation.partition("=") for annotation in ANNOTATION.findall(later)]
        constants = [left for left, _, right in sides if left == right]
        compared = [number for pair in _COMPARISON.findall(later) for number in pair]
        is_computed = answer not in self.numbers.plain
        return any(_is(text, answer) for text in constants + (compared if is_computed else []))

    def _hundred_rule(self) -> str | None:
        text = f"{self.written.question}\n{self.body}"
        if _CENTS_CUE.search(text):
            return "cents"
        return "percent" if _PERCENT_CUE.search(text) else None

    def _rounding(self, value: Fraction, line: int) -> str | None:
        """How the end rounds the last value, if a word there says so."""
        answer = self.written.answer
        if value.denominator == 1 or not _ROUNDING_CUE.search("\n".join(self.written.lines[line:])):
            return None
        if "nearest" in self.written.question and rounded(value, "round") == answer:
            return "round"
        return next((how for how in ("ceil", "floor") if rounded(value, how) == answer), None)

    def _failure(self, value: Fraction) -> NoProgram:
        answer = self.written.answer
        numbers = {token.value for token in tokens(plain_spelling(self.last_line)) if token.kind == "number"}
        detail = f"the last value computed is {_shown(value)}, the answer is {_shown(answer)}"
        if answer in numbers:
            return NoProgram("the answer is stated but not computed", detail)
        return NoProgram("the solution ends in another number", detail)


def _is(text: str, value: Fraction) -> bool:
    expression = parse(list(tokens(text)))
    return expression is not None and value_of(expression) == value


def _shown(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{float(value):g}"


def program(steps: Steps, answer: int) -> Program:
    """What the answer rests on, and nothing else."""
    order = sorted(_needed(steps.steps, answer))
    # The answer is the last: nothing that it rests on comes after it.
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
