"""What a situation is: quantities that belong together, ways to tell each of them, and questions to ask.

Situations are data (see `situations/`); this module gives them their form and reads their templates.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from storyproblems.expressions import (
    Expression,
    Product,
    Sum,
    Value,
    evaluate,
    from_syntax,
    names,
    nodes,
    operations,
    parse,
)
from storyproblems.templates import Template, comparisons, parse_template

SIGNS = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.NotEq: operator.ne,
}


@dataclass(frozen=True)
class Formula:
    """How a quantity follows from others."""

    expression: Expression

    @cached_property
    def names(self) -> frozenset[str]:
        """The quantities it follows from."""
        return frozenset(names(self.expression))

    @cached_property
    def parts(self) -> tuple[Expression, ...]:
        """Every sum and product in it: what has to be worked out."""
        return tuple(node for node in nodes(self.expression) if isinstance(node, Sum | Product))

    @cached_property
    def operations(self) -> int:
        """How many operations it takes."""
        return operations(self.expression)


@dataclass(frozen=True)
class Ask:
    """A question, the formula of its answer, and what kind of quantity that is, so that sequels can go on.

    `it` is what a sequel calls that quantity, and `item`, if it counts things, the noun for one of them.
    """

    text: str
    rule: str
    kind: str = ""
    it: str = "the money"
    item: str = ""

    @cached_property
    def template(self) -> Template:
        return parse_template(self.text)

    @cached_property
    def formula(self) -> Formula:
        return Formula(parse(self.rule))


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison that numbers must satisfy for a story to make sense."""

    holds: Callable[[Value, Value], bool]
    left: Expression
    right: Expression

    def is_met(self, values: Mapping[str, Value]) -> bool:
        return self.holds(evaluate(self.left, values), evaluate(self.right, values))


@dataclass(frozen=True)
class Clause:
    """One way to tell a quantity: as a number, or through others that define it."""

    template: Template
    formulas: Mapping[str, Formula]
    conditions: tuple[Condition, ...] = ()

    @cached_property
    def needs(self) -> frozenset[str]:
        """The quantities this clause expects to be told elsewhere."""
        wanted = {name for formula in self.formulas.values() for name in formula.names}
        wanted |= {amount.other for amount in self.template.amounts.values() if amount.other}
        for condition in self.conditions:
            wanted |= {*names(condition.left), *names(condition.right)}
        return frozenset(wanted - self.template.amounts.keys() - self.formulas.keys())

    @cached_property
    def operations(self) -> int:
        """How many operations telling the quantity this way asks for."""
        return sum(formula.operations for formula in self.formulas.values())


@dataclass(frozen=True)
class Situation:
    """A setting with its quantities (`roles`), in the order they are told, and questions about them.

    A role's key names the quantities it tells, several if they belong together, and its text has one
    telling per line: a template and, after `//`, rules. A bare formula defines the role, `name = formula`
    another quantity, a comparison is a condition. A role without a name is always told.

    A situation that `follows` kinds of quantities is a sequel: it goes on from such a quantity, which its
    formulas call `it`.
    """

    name: str
    roles: Mapping[str, str]
    asks: Sequence[Ask]
    words: Mapping[str, str] = field(default_factory=dict)
    trades: str = ""
    noise: Sequence[str] = ()
    follows: str = ""

    @cached_property
    def clauses(self) -> dict[str, list[Clause]]:
        """The clauses of each role, comparisons spelled out."""
        return {
            role: [clause for line in tellings.strip().split("\n") for clause in _clauses(role, line)]
            for role, tellings in self.roles.items()
        }


def _clauses(role: str, line: str) -> Iterator[Clause]:
    text, _, rules = " ".join(line.split()).partition(" // ")  # indented in the source, one line here
    for said, comparison in comparisons(text):
        formulas: dict[str, Formula] = {}
        conditions: list[Condition] = []
        for rule in (*comparison, *filter(None, rules.split("; "))):
            match ast.parse(rule).body[0]:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    formulas[name] = Formula(from_syntax(value))
                case ast.Expr(value=ast.Compare(left=left, ops=[sign], comparators=[right])):
                    conditions.append(Condition(SIGNS[type(sign)], from_syntax(left), from_syntax(right)))
                case ast.Expr(value=value):  # a bare formula is about the role itself
                    formulas[role] = Formula(from_syntax(value))
        yield Clause(parse_template(said), formulas, tuple(conditions))
