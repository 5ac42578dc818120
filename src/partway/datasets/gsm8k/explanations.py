"""Where the constants of a solution come from: the question, what everybody knows, or nowhere.

A constant nobody explains was computed in the annotator's head; the reading with the fewest of them is taken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from partway.datasets.gsm8k.said_numbers import Kind, said_amounts, said_numbers
from partway.datasets.gsm8k.units import in_other_units

Origin = Literal["question", "conversion", "unexplained"]

_KNOWN = "0 1 2 7 10 12 24 30 52 60 100 365 1000 3600 1/2 1/10 1/100"
KNOWN = frozenset(map(Fraction, _KNOWN.split()))
"""Conversions that need no cue: days, hours, minutes, months, weeks, percents, metric prefixes, halves."""

_KNOWN_WITH_CUE = {
    r"dollar|cent\b|cents|coin|change|\$": "5 25 50 1/20 1/4",
    r"quarter": "4 25 1/4",
    r"nickel": "5 1/20",
    r"week|work|school": "4 5",
    r"month|january|march|may|july|august|october|december": "4 31",
    r"february": "28 29",
    r"year|annual": "366",
    r"half": "3/2",
    r"inch|foot|feet|yard|mile": "3 36 1760 5280",
    r"ounce|pound|oz\b|lb|\btons?\b": "16 2000",
    r"gallon|quart|pint|cup|spoon": "3 4 8 16 128",
    r"triang": "3 180",
    r"angle|degree|circle": "90 180 360",
    r"squar|rectang|perimeter|sides|\bcars?\b|wheel|tire|dog|cat|horse|cow|goat|sheep|pig|legs|animal": "4",
    r"cub(?:e|ic)": "3 6 8",
    r"pentagon": "5",
    r"hexagon|insect|\bants?\b|\bbees?\b|\bdie\b|\bdice\b": "6",
    r"octo|spider|octagon": "8",
    r"\bcards?\b": "4 13",
    r"alphabet": "26",
}
# The table above reads best by cue; look-ups are by value.
_CUES: dict[Fraction, list[re.Pattern[str]]] = {}
for _cue, _values in _KNOWN_WITH_CUE.items():
    for _value in map(Fraction, _values.split()):
        _CUES.setdefault(_value, []).append(re.compile(_cue, re.IGNORECASE))


@dataclass(frozen=True)
class QuestionNumbers:
    """What a question says: `plain` numbers, `percents` (25 for 25%), and other `forms` (3 for the third)."""

    question: str
    plain: frozenset[Fraction]
    percents: frozenset[Fraction]
    forms: frozenset[Fraction]

    @classmethod
    def of(cls, question: str) -> QuestionNumbers:
        said: dict[Kind, set[Fraction]] = {"plain": set(), "percent": set(), "form": set()}
        for value, kind in said_numbers(question):
            said[kind].add(value)
        return cls(question, *(frozenset(values) for values in said.values()))

    def says(self, value: Fraction) -> bool:
        """Whether the question states this number, in one form or another."""
        if value in self.plain or value in self.forms:
            return True
        return bool(self.percents) and (value in self.percents or value * 100 in self.percents)

    def origin(self, value: Fraction) -> Origin:
        """Whether the question says this number or implies it (1.25 by 25% more), or everybody knows it."""
        if self.says(value) or value in self._changes:
            return "question"
        known = value in KNOWN or self._is_known_here(value) or value in self._converted
        return "conversion" if known else "unexplained"

    @cached_property
    def _changes(self) -> frozenset[Fraction]:
        """What a rise or a fall by a percent leaves, in points and as a factor."""
        # 25% more is 125 in points and 1.25 as a factor, 25% less is 75 and 0.75.
        points = [100 + sign * percent for percent in self.percents for sign in (1, -1)]
        return frozenset(value / scale for value in points for scale in (1, 100))

    def _is_known_here(self, value: Fraction) -> bool:
        return any(cue.search(self.question) for cue in _CUES.get(value, ()))

    @cached_property
    def _converted(self) -> frozenset[Fraction]:
        """Amounts of the question in other units: 14 for two weeks."""
        return frozenset(
            converted
            for amount, unit in said_amounts(self.question)
            for converted in in_other_units(amount, unit)
        )
