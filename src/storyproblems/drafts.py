"""Drawing numbers that make sense in a story: whole people, money to the cent, nothing negative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from storyproblems.amounts import Amount
from storyproblems.expressions import (
    Expression,
    Name,
    Number,
    Product,
    Sum,
    Value,
    evaluate,
    substitute,
)
from storyproblems.planning import Chapter
from storyproblems.quantities import ANSWER, QuantityGraph, is_tidy, tidied
from storyproblems.situation import Clause, Formula
from storyproblems.templates import Template

LARGEST = 20_000  # no story for children goes further
IT = "it"


@dataclass
class Draft:
    """The numbers drawn so far, how the story says them, and what follows from them."""

    values: dict[str, Value] = field(default_factory=dict)
    amounts: dict[str, Amount] = field(default_factory=dict)
    money: dict[str, int] = field(default_factory=dict)  # the power of dollars in a quantity's unit
    decimal: set[str] = field(default_factory=set)  # quantities that need not be whole

    def draw(self, clause: Clause, has_cents: bool, rng: Random) -> bool:
        """Draw the numbers of a clause; False if they make no sense."""
        return (
            self.draw_amounts(clause.template, has_cents, rng)
            and all(self.define(name, formula) for name, formula in clause.formulas.items())
            and all(condition.is_met(self.values) for condition in clause.conditions)
        )

    def draw_amounts(self, template: Template, has_cents: bool, rng: Random) -> bool:
        """Draw the numbers a template has slots for; False if none fit."""
        for name, amount in template.amounts.items():
            value = amount.draw(self.values, has_cents, rng)
            if value is None:
                return False
            self.values[name] = value
            self.amounts[name] = amount
            self.money[name] = int(amount.kind == "money")
            if amount.kind == "decimal":
                self.decimal.add(name)
        return True

    def define(self, name: str, formula: Formula) -> bool:
        """Work out a quantity; False if it, or anything on the way to it, makes no sense."""
        is_decimal = not self.decimal.isdisjoint(formula.names)
        for part in formula.parts:
            value = evaluate(part, self.values)
            # Dollars have cents; a ratio of dollars is a plain number again.
            decimals = 2 if is_decimal or self._money(part) > 0 else 0
            if not 0 < value <= LARGEST or not is_tidy(value, decimals):
                return False
        self.values[name] = tidied(evaluate(formula.expression, self.values))
        self.money[name] = self._money(formula.expression)
        if is_decimal:
            self.decimal.add(name)
        return True

    def continue_from(self, name: str) -> None:
        """Let formulas to come call this quantity `it`."""
        self.values[IT], self.money[IT] = self.values[name], self.money[name]
        self.decimal.discard(IT)
        if name in self.decimal:
            self.decimal.add(IT)

    def said(self, rng: Random) -> dict[str, str]:
        """The numbers as the story puts them."""
        return {name: amount.say(self.values[name], rng) for name, amount in self.amounts.items()}

    def _money(self, part: Expression) -> int:
        match part:
            case Name(name):
                return self.money[name]
            case Sum(plus, _):
                return max(self._money(term) for term in plus)
            case Product(over, under):
                return sum(map(self._money, over)) - sum(map(self._money, under))
        return 0


def draw_numbers(chapters: Sequence[Chapter], has_cents: bool, rng: Random) -> Draft | None:
    """Numbers for all chapters; None if these make no sense."""
    draft = Draft()
    for index, chapter in enumerate(chapters):
        for clause in chapter.clauses:
            if not draft.draw(clause, has_cents, rng):
                return None
        name = result_name(chapters, index)
        if not draft.draw_amounts(chapter.ask.template, has_cents, rng) or not draft.define(
            name, chapter.ask.formula
        ):
            return None
        draft.continue_from(name)
    return draft


def quantity_graph(chapters: Sequence[Chapter], draft: Draft) -> QuantityGraph:
    """The numbers the story gives as numerals, and formulas with the numbers it says in words."""
    numbers: dict[str, Value] = {}
    replaced: dict[str, Expression] = {}
    for name, amount in draft.amounts.items():
        if amount.is_said_in_words:  # `twice` gives solutions a 2, no number of the question
            replaced[name] = Number(draft.values[name])
        else:
            numbers[name] = draft.values[name]
    formulas: dict[str, Expression] = {}
    for index, chapter in enumerate(chapters):
        for clause in chapter.clauses:
            formulas |= {
                name: substitute(formula.expression, replaced) for name, formula in clause.formulas.items()
            }
        result = Name(result_name(chapters, index))
        formulas[result.name] = substitute(chapter.ask.formula.expression, replaced)
        replaced[IT] = result
    return QuantityGraph(numbers, formulas)


def result_name(chapters: Sequence[Chapter], index: int) -> str:
    """What the quantity that a chapter leads to is called."""
    return ANSWER if index == len(chapters) - 1 else f"result{index + 1}"
