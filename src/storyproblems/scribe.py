"""Writing expressions down as steps: the order of terms, brackets, and what gets a step of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

from storyproblems.dice import chance, pick, shuffled
from storyproblems.expressions import Expression, Name, Number, Product, Sum, Value
from storyproblems.quantities import is_tidy
from storyproblems.steps import OPERATORS, Operation, Step, Tree, size

MAX_OPERATIONS_PER_STEP = 4
GROUPING = 0.35  # share of long chains in which somebody sees a pair that belongs together
HUNDRED = Number(100)
INVERSE = {"+": "-", "*": "/"}


class Term(NamedTuple):
    """A tree and its value."""

    tree: Tree
    value: Value


class Link(NamedTuple):
    """A term of a sum or product with its sign."""

    sign: str
    term: Term


class Scribe:
    """Turns one definition after another into steps and remembers what has a name already."""

    def __init__(self, rng: Random, values: Mapping[str, Value], splitting: float, swapping: float) -> None:
        self.steps: list[Step] = []
        self.rng = rng
        self.values = dict(values)
        self.splitting = splitting
        self.swapping = swapping
        self._named: dict[Tree, Name] = {}  # nobody works the same thing out twice
        self._unnamed: set[Tree] = set()  # decided once: the same expression is written alike throughout

    def define(self, name: str, expression: Expression) -> None:
        """Write the steps that end in a step called `name`."""
        tree = self._term(expression).tree
        self.steps.append(Step(name, tree))
        self._named.setdefault(tree, Name(name))

    def _term(self, expression: Expression) -> Term:
        match expression:
            case Number(value):
                return Term(expression, value)
            case Name(name):
                return Term(expression, self.values[name])
            case Sum(plus, minus):
                return self._chain("+", [self._operand(e) for e in plus], [self._operand(e) for e in minus])
            case Product(over, under):
                return self._chain("*", [self._operand(e) for e in over], [self._operand(e) for e in under])

    def _operand(self, expression: Expression) -> Term:
        return self._perhaps_named(self._term(expression), self.splitting)

    def _chain(self, sign: str, ahead: Sequence[Term], behind: Sequence[Term]) -> Term:
        """Join terms by `sign` and its inverse, naming intermediate results now and then."""
        links = [*(Link(sign, term) for term in ahead), *(Link(INVERSE[sign], term) for term in behind)]
        if len(links) > 2 and chance(self.rng, GROUPING):
            links = self._grouped(links, sign)
        if chance(self.rng, self.swapping):
            links = self._swapped(links, sign)
        total = links[0].term
        for link in links[1:]:
            is_percentage = link.term.tree == HUNDRED  # rarely worth a step of its own
            total = self._perhaps_named(total, self.splitting * (0.3 if is_percentage else 1))
            total = joined(link.sign, total, link.term)
        return total

    def _grouped(self, links: list[Link], sign: str) -> list[Link]:
        """Put brackets around two terms: x - y - z as x - (y + z), x * p / 100 as x * (p / 100)."""
        first = pick(self.rng, range(len(links) - 1))
        left, right = links[first], links[first + 1]
        group = joined(sign if left.sign == right.sign else INVERSE[sign], left.term, right.term)
        # x - y + z cannot become x - (y + z); and no brackets around what would be negative or odd.
        if left.sign != sign == right.sign or not is_sensible(group.value):
            return links
        return [
            *links[:first],
            Link(left.sign, self._perhaps_named(group, self.splitting)),
            *links[first + 2 :],
        ]

    def _swapped(self, links: list[Link], sign: str) -> list[Link]:
        """The terms in another order, unless odd numbers would come up on the way."""
        others = shuffled(self.rng, links)
        if others[0].sign != sign:  # no chain begins with a minus or a division
            return links
        total = others[0].term
        for link in others[1:]:
            total = joined(link.sign, total, link.term)
            if not is_sensible(total.value):
                return links
        return others

    def _perhaps_named(self, term: Term, splitting: float) -> Term:
        """The term, perhaps under a name: its old one, or that of a new step."""
        if not isinstance(term.tree, Operation):
            return term
        if term.tree in self._unnamed:
            return term
        if term.tree not in self._named:
            if size(term.tree) < MAX_OPERATIONS_PER_STEP and not chance(self.rng, splitting):
                self._unnamed.add(term.tree)
                return term
            name = f"step {len(self.steps)}"
            self.steps.append(Step(name, term.tree))
            self._named[term.tree] = Name(name)
        return Term(self._named[term.tree], term.value)


def joined(sign: str, left: Term, right: Term) -> Term:
    """One operation on two terms."""
    return Term(Operation(sign, left.tree, right.tree), OPERATORS[sign](left.value, right.value))


def is_sensible(value: Value) -> bool:
    """Whether a person would be content with this number on the way."""
    return value > 0 and is_tidy(value)
