"""What numbers a slot of a template may hold, and how they are said.

{n:3..12}        whole numbers from 3 to 12         {n:2,4,6}       one of these
{n:10..90/5}     in steps of 5                      {w:1.5..6/0.5}  also decimals
{c:$2..9}        money, with cents in some stories  {p:%total}      a percentage of `total` that is nice
{p:2..8%}        any percentage from 2 to 8         {p:5..20/5%total}  from a range, and nice
{n:3..12|total}  only divisors of `total`           {n:3..12*k}     3 to 12 times `k`
{k:times}        twice, three times ...             {k:part total}  half, a third ... of `total`
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from storyproblems.dice import chance, pick
from storyproblems.expressions import Value
from storyproblems.language import NUMBER_WORDS, PARTS, TIMES, dollars, numeral
from storyproblems.quantities import is_tidy, tidied

AmountKind = Literal["whole", "decimal", "money", "percent", "times", "part"]
# Round ones, from which shares of ordinary numbers come out whole.
PERCENTAGES = (5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 80)
# Half a dollar twice: prices end so most often.
CENTS = (0.25, 0.5, 0.5, 0.75, 0.2, 0.4, 0.6, 0.8)
LARGEST_WITH_CENTS = 10  # dollars: a bicycle has no cents
SPELLED_OUT = 0.12  # share of small numbers told as words

_SPEC = re.compile(r"(?P<money>\$)?(?P<range>[\d.,]+(/[\d.]+)?)(?P<relation>[|*%])?(?P<other>\w+)?")


@dataclass(frozen=True, slots=True)
class Amount:
    """The values a slot may take; `other` is the quantity they must divide, multiply or be a share of."""

    kind: AmountKind
    candidates: tuple[Value, ...]
    relation: str = ""  # one of | * %
    other: str = ""

    @property
    def is_said_in_words(self) -> bool:
        """Whether the story has a word for the value, not a numeral, so that solutions imply it."""
        return self.kind in ("times", "part")

    def draw(self, values: Mapping[str, Value], has_cents: bool, rng: Random) -> Value | None:
        """A value that fits what is known so far; None if there is none."""
        candidates: Sequence[Value] = self.candidates
        if self.relation == "*":
            return tidied(pick(rng, candidates) * values[self.other])
        if self.relation:
            candidates = [value for value in candidates if self._fits(value, values[self.other])]
        if not candidates:
            return None
        value = pick(rng, candidates)
        is_small_price = (
            self.kind == "money" and not self.relation and self.candidates[-1] <= LARGEST_WITH_CENTS
        )
        return tidied(value + pick(rng, CENTS)) if is_small_price and has_cents else value

    def _fits(self, value: Value, other: Value) -> bool:
        decimals = 0 if other == int(other) else 2
        if self.relation == "%":
            return is_tidy(other * value / 100, decimals)
        return value < other and is_tidy(other / value, decimals)

    def say(self, value: Value, rng: Random) -> str:
        """The value as the story puts it."""
        match self.kind:
            case "money":
                return dollars(value)
            case "percent":
                return f"{numeral(value)}%"
            case "times":
                return TIMES[int(value)]
            case "part":
                return PARTS[int(value)]
        if value == int(value) and value < len(NUMBER_WORDS) and chance(rng, SPELLED_OUT):
            return NUMBER_WORDS[int(value)]
        return numeral(value)


def parse_amount(spec: str) -> Amount:
    """The amount that a slot's specification describes."""
    if spec == "times":
        return Amount("times", tuple(TIMES)[:3])  # five times as many makes large numbers
    if spec.startswith("part"):
        other = spec.removeprefix("part").strip()
        return Amount("part", tuple(PARTS), "|" if other else "", other)
    if spec.startswith("%"):
        return Amount("percent", PERCENTAGES, "%", spec[1:])
    match = _SPEC.fullmatch(spec)
    assert match, f"not an amount: {spec!r}"
    candidates = _candidates(match["range"])
    kind: AmountKind = "whole" if all(isinstance(value, int) for value in candidates) else "decimal"
    kind = "money" if match["money"] else "percent" if match["relation"] == "%" else kind
    return Amount(kind, candidates, match["relation"] if match["other"] else "", match["other"] or "")


def _candidates(text: str) -> tuple[Value, ...]:
    if ".." not in text:
        return tuple(tidied(float(value)) for value in text.split(","))
    bounds, _, step = text.partition("/")
    low, high = (float(bound) for bound in bounds.split(".."))
    count = int((high - low) / float(step or 1) + 1e-9) + 1  # 0.3 / 0.1 is a little less than 3
    return tuple(tidied(low + index * float(step or 1)) for index in range(count))
