"""Claims to steps: every number becomes a reference to the step that computed it, or a constant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from mathdata.gsm8k.equations import Claim, Derivation
from mathdata.gsm8k.explanations import QuestionNumbers
from mathdata.gsm8k.expressions import (
    HUNDRED,
    Expression,
    Letter,
    Negative,
    Number,
    Operation,
    Reference,
    close,
    has_operation,
    leaves,
    letters,
    value_of,
)

Role = Literal["added", "scaled"]
HUNDREDTH = Fraction(1, 100)


@dataclass(frozen=True, slots=True)
class Step:
    """An expression over constants and earlier steps, its value, and where it came from."""

    expression: Expression
    value: Fraction
    written: Fraction  # as the solution rounds it
    rule: str
    source: str
    unexplained: frozenset[Fraction]  # constants it rests on that nothing explains


@dataclass
class Steps:
    """The steps read so far, and how later ones have taken up their values."""

    numbers: QuestionNumbers
    percents: frozenset[Fraction]  # numbers the solution writes with a percent sign
    steps: list[Step] = field(default_factory=list)
    letters: dict[str, Expression] = field(default_factory=dict)
    uses: dict[Role, set[int]] = field(default_factory=lambda: {"added": set(), "scaled": set()})

    @property
    def values(self) -> list[Fraction]:
        return [step.value for step in self.steps]

    def add(self, claim: Claim, added_later: frozenset[Fraction] = frozenset()) -> int | None:
        """The step that makes the claim, by the reading with the fewest unexplained constants."""
        readings = [self._read(candidate, added_later) for candidate in claim.candidates]
        found = [reading for reading in readings if reading is not None]
        # Most claims have one reading; what it costs need not be known then.
        best = found[0] if len(found) == 1 else min(found, key=self._cost, default=None)
        index = None if best is None else self._append(best, claim.written)
        if claim.letter is not None:
            known = self._latest(claim.written) if index is None else index
            self.letters[claim.letter] = Number(claim.written) if known is None else Reference(known)
        return index

    def append(self, expression: Expression, rule: str, source: str) -> int:
        """A further step; its numbers are constants."""
        value = value_of(expression, {}, self.values)
        assert value is not None, f"{expression} has no value"
        self.steps.append(Step(expression, value, value, rule, source, self._unexplained(expression)))
        return len(self.steps) - 1

    def is_unused(self, index: int) -> bool:
        """Whether no step has taken up this one yet."""
        return index not in self.uses["added"] and index not in self.uses["scaled"]

    def _read(self, candidate: Derivation, added_later: frozenset[Fraction]) -> _Reading | None:
        resolver = _Resolver(self, candidate.expression, added_later)
        expression = resolver.resolve(candidate.expression, "added")
        if letters(expression) or value_of(expression, {}, self.values) is None:
            return None
        return _Reading(expression, candidate, resolver.taken)

    def _cost(self, reading: _Reading) -> tuple[int, int]:
        """Unexplained constants, then constants the question does not say; equations may bring their own."""
        constants = {leaf.value for leaf in leaves(reading.expression) if isinstance(leaf, Number)}
        unsaid = sum(not self.numbers.says(value) for value in constants)
        is_linear = reading.candidate.rule == "linear"
        return len(self._unexplained(reading.expression)), 0 if is_linear else unsaid

    def _unexplained(self, expression: Expression) -> frozenset[Fraction]:
        found: set[Fraction] = set()
        for leaf in leaves(expression):
            if isinstance(leaf, Reference):
                found |= self.steps[leaf.step].unexplained
            elif isinstance(leaf, Number) and self.numbers.origin(leaf.value) == "unexplained":
                found.add(leaf.value)
        return frozenset(found)

    def _append(self, reading: _Reading, written: Fraction) -> int:
        for index, role in reading.taken.items():
            self.uses[role].add(index)
        expression, candidate = reading.expression, reading.candidate
        if candidate.rule == "linear":  # nobody writes a solved equation as one step
            expression = self._split(expression, candidate)
        index = self.append(expression, candidate.rule, candidate.source)
        self.steps[index] = replace(self.steps[index], written=written)
        return index

    def _split(self, expression: Expression, candidate: Derivation) -> Expression:
        """Numerator and denominator of a solved equation as steps of their own."""
        if not isinstance(expression, Operation) or expression.operator != "/":
            return expression
        left, right = (
            Reference(self.append(part, candidate.rule, candidate.source)) if has_operation(part) else part
            for part in (expression.left, expression.right)
        )
        return Operation("/", left, right)

    def _latest(self, value: Fraction) -> int | None:
        return next((i for i, step in reversed([*enumerate(self.steps)]) if close(step.value, value)), None)


@dataclass(frozen=True, slots=True)
class _Reading:
    expression: Expression
    candidate: Derivation
    taken: dict[int, Role]


class _Resolver:
    """Replaces the numbers of one expression.

    A number that is also the value of a step means the step, unless the question says the number too and
    the step has another use: one step is taken once in an expression; a factor is the question's number if
    the step is added up later or was used before; a summand is the question's if the step was added before.
    What everybody knows (60 minutes) is meant only where the step is in the same product already.
    """

    def __init__(self, steps: Steps, expression: Expression, added_later: frozenset[Fraction]) -> None:
        self.steps = steps
        self.added_later = added_later
        self.remaining = Counter(leaf.value for leaf in leaves(expression) if isinstance(leaf, Number))
        self.taken: dict[int, Role] = {}
        self.product: set[int] = set()  # taken in the product that is being read

    def resolve(self, expression: Expression, role: Role) -> Expression:
        match expression:
            case Operation(operator, left, right):
                whole = self._whole(operator, left, right)
                if whole is not None:
                    return whole
                inner: Role = "added" if operator in "+-" else "scaled"  # what its operands are to it
                first = self.resolve(left, inner)
                if inner == "added":  # the right summand begins a product of its own
                    self.product.clear()
                return Operation(operator, first, self.resolve(right, inner))
            case Negative(Number(value)) if any(close(step.value, -value) for step in self.steps.steps):
                return self._number(-value, role)
            case Negative(operand):
                return Negative(self.resolve(operand, role))
            case Letter(name):
                return self.steps.letters.get(name, expression)
            case Number(value, _, False):
                return self._number(value, role)
        return expression

    def _whole(self, operator: str, left: Expression, right: Expression) -> Expression | None:
        """Two numbers that are one: a percent or fraction of the question, 2/3 after 200/300 = 2/3."""
        if not isinstance(left, Number) or not isinstance(right, Number):
            return None
        hundredth = (operator, right.value) in (("/", HUNDRED.value), ("*", HUNDREDTH))
        if hundredth and left.value in self.steps.numbers.percents:
            return Operation(operator, left, right)
        if operator != "/" or not right.value or left.value >= right.value:
            return None
        fraction = left.value / right.value
        is_said = fraction in self.steps.numbers.plain
        for index, step in enumerate(self.steps.steps):
            is_meant = self.steps.is_unused(index) or not is_said
            if is_meant and step.value.denominator != 1 and close(step.value, fraction):
                self.taken[index] = "scaled"
                return Reference(index)
        return Operation(operator, left, right) if is_said else None

    def _number(self, value: Fraction, role: Role) -> Expression:
        matches = [
            i for i, step in enumerate(self.steps.steps) if value == step.written or close(step.value, value)
        ]
        chosen = self._choose(matches, value, role)
        self.remaining[value] -= 1  # numbers like this one that are still to come
        if chosen is not None:
            self.taken[chosen] = role
            self.product.add(chosen)
            return Reference(chosen)
        derived = None if self.steps.numbers.says(value) else self._derived(value)
        return derived or Number(value)

    def _choose(self, matches: list[int], value: Fraction, role: Role) -> int | None:
        """The step that is meant by a number, None if the question's own number is."""
        untaken = [index for index in matches if index not in self.taken]
        fresh = [index for index in untaken if self.steps.is_unused(index)]
        if not untaken:
            return matches[-1] if matches and self._means_step_again(matches[-1], value) else None
        # As many equal numbers are still to come: the first of them means the earliest of the last steps.
        latest = fresh[-min(self.remaining[value], len(fresh))] if fresh else None
        if value not in self.steps.numbers.plain:
            return untaken[-1] if latest is None else latest
        if role == "scaled":
            return None if value in self.added_later else latest
        unadded = [index for index in untaken if index not in self.steps.uses["added"]]
        return latest if latest is not None or not unadded else unadded[-1]

    def _means_step_again(self, step: int, value: Fraction) -> bool:
        if value in self.steps.numbers.plain:
            return False
        return step not in self.product or self.steps.numbers.origin(value) == "unexplained"

    def _derived(self, value: Fraction) -> Expression | None:
        """A step in other units: .6 after 100 - 40 = 60%, 60% after 3/5 = .6."""
        explained = self.steps.numbers.origin(value) != "unexplained"
        for index, step in reversed([*enumerate(self.steps.steps)]):
            if explained and not self.steps.is_unused(index):
                continue
            if step.value in self.steps.percents and close(step.value, value * 100):
                return Operation("/", Reference(index), HUNDRED)
            if value in self.steps.percents and close(step.value * 100, value):
                return Operation("*", Reference(index), HUNDRED)
        return None


def added_later(claims: Sequence[Claim]) -> list[frozenset[Fraction]]:
    """For every claim, the numbers that later claims add or subtract."""
    later: frozenset[Fraction] = frozenset()
    found = []
    for claim in reversed(claims):
        found.append(later)
        if claim.candidates:
            later |= set(_summands(claim.candidates[0].expression))
    return found[::-1]


def _summands(expression: Expression) -> list[Fraction]:
    match expression:
        case Operation(operator, left, right):
            sides = [side.value for side in (left, right) if isinstance(side, Number)]
            return (sides if operator in "+-" else []) + _summands(left) + _summands(right)
    return []
