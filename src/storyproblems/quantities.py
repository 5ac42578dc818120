"""The quantities of one story and how each follows from others: what all its solution paths share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose
from typing import Any

from storyproblems.expressions import Expression, Value, evaluate, operations, parse
from storyproblems.steps import spell

ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class QuantityGraph:
    """Numbers in the order the question gives them; formulas, each after those it needs, `answer` last."""

    numbers: Mapping[str, Value]
    formulas: Mapping[str, Expression]

    @property
    def values(self) -> dict[str, Value]:
        """Numbers and computed quantities by name."""
        values = dict(self.numbers)
        for name, formula in self.formulas.items():
            values[name] = tidied(evaluate(formula, values))
        return values

    @property
    def operations(self) -> int:
        """How many operations lead from the numbers to the answer."""
        return sum(operations(formula) for formula in self.formulas.values())

    def to_json(self) -> dict[str, Any]:
        """Plain values for `Problem.meta`."""
        formulas = {name: spell(formula) for name, formula in self.formulas.items()}
        return {"numbers": dict(self.numbers), "formulas": formulas}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> QuantityGraph:
        """The graph that `to_json` described."""
        formulas = {name: parse(formula) for name, formula in data["formulas"].items()}
        return cls(dict(data["numbers"]), formulas)


def is_tidy(value: Value, decimals: int = 2) -> bool:
    """Whether a number has at most this many decimals, rounding errors apart."""
    scaled = value * 10**decimals  # 0.1 + 0.2 counts as 0.3
    return isclose(scaled, round(scaled), rel_tol=0, abs_tol=1e-6)


def tidied(value: Value) -> Value:
    """The number without rounding errors: an integer if it is whole.

    >>> tidied(3 * 0.7), tidied(0.25 * 12)
    (2.1, 3)
    """
    rounded = round(value, 6)
    return int(rounded) if rounded == int(rounded) else rounded
