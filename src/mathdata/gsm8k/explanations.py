"""Where the constants of a solution come from: the question, what everybody knows, or nowhere.

A question says numbers in digits, words, fractions and percents. A constant nobody explains was computed in
the annotator's head; the reading with the fewest of them is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from mathdata.gsm8k.expressions import in_other_units

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
        # 25% may be written 25 or 0.25.
        return bool(self.percents) and (value in self.percents or value * 100 in self.percents)

    def origin(self, value: Fraction) -> Origin:
        """Whether the question says this number or implies it (1.25 by 25% more), or everybody knows it."""
        if self.says(value) or value in self._changes:
            return "question"
        is_cued = any(cue.search(self.question) for cue in _CUES.get(value, ()))
        known = value in KNOWN or is_cued or value in self._converted
        return "conversion" if known else "unexplained"

    @cached_property
    def _changes(self) -> frozenset[Fraction]:
        """What a rise or a fall by a percent leaves, in points and as a factor."""
        # 25% more is 125 in points and 1.25 as a factor, 25% less is 75 and 0.75.
        points = [100 + sign * percent for percent in self.percents for sign in (1, -1)]
        return frozenset(value / scale for value in points for scale in (1, 100))

    @cached_property
    def _converted(self) -> frozenset[Fraction]:
        """Amounts of the question in other units: 14 for two weeks."""
        return frozenset(
            converted
            for amount, unit in said_amounts(self.question)
            for converted in in_other_units(amount, unit)
        )


Kind = Literal["plain", "percent", "form"]
Said = Iterator[tuple[Fraction, Kind]]

SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_ORDINALS = "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
PARTS = {word: value for value, word in enumerate(_ORDINALS.split(), 3)} | {
    "half": 2, "halve": 2, "quarter": 4, "sixteenth": 16, "twentieth": 20, "hundredth": 100,
}  # fmt: skip
MULTIPLES = {
    "first": 1, "once": 1, "single": 1, "another": 1, "second": 2, "twice": 2, "double": 2, "both": 2,
    "pair": 2, "couple": 2, "twin": 2, "halves": 2, "thrice": 3, "triple": 3, "triplet": 3, "trio": 3,
    "quadruple": 4, "quintuple": 5, "dozen": 12, "decade": 10, "century": 100, "none": 0,
}  # fmt: skip

_DIGITS = re.compile(
    r"(?<![\d.])(\$?)(\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)\s*(%|percent\b|(?:k|K|hundred|thousand|million|billion)\b|cents?\b|¢)?"
)
_FRACTION = re.compile(r"(?:(\d+)(?:\s+and\s+|\s+|-))?(\d+)\s*/\s*(\d+)")
_SPACED = re.compile(r"(?<![\d.])\d{1,3}(?: \d{3})+(?![\d,.])")
_AND_A_HALF = re.compile(r"(\d+)[ -](?:and[ -])?(?:an?[ -]|one[ -])?half")
_ITEM = r"[\w'’-]+(?: [\w'’-]+){0,3}"
_LIST = re.compile(rf"\b{_ITEM}((?:, {_ITEM})+),? (?:and|or) ")
_ENDLESS = re.compile(r"\d{30,}")
_WORD = re.compile(r"[a-z]+")
_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
UNITS = {word: number for number, word in enumerate(_SMALL.split())}
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
TENS = {word: 10 * number for number, word in enumerate(_TENS.split(), 2)}
_AMOUNT = re.compile(rf"(\d+(?:,\d{{3}})*(?:\.\d+)?|\b(?:{'|'.join([*UNITS, *TENS])}))[ -]([a-z]+)")


def said_numbers(question: str) -> Said:
    """Every number in a question; ordinals and the lengths of lists are other forms of one."""
    question = _ENDLESS.sub(" ", question)  # no question counts so far; fractions of it would be slow
    yield from _digit_numbers(question)
    for whole, top, bottom in _FRACTION.findall(question):
        if int(bottom):
            fraction = Fraction(int(top), int(bottom))
            # `2 1/2` may be two and a half, or two of something and one half.
            yield from ((fraction, "plain"), (int(whole or 0) + fraction, "plain"))
    for spaced in _SPACED.findall(question):
        yield Fraction(spaced.replace(" ", "")), "plain"
    for whole in _AND_A_HALF.findall(question):
        yield int(whole) + Fraction(1, 2), "plain"
    for middle in _LIST.findall(question):  # of Ann, Ben and Cy, it is Ben
        yield Fraction(middle.count(",") + 2), "form"
    yield from _word_numbers(_WORD.findall(question.lower()))


def said_amounts(question: str) -> Iterator[tuple[Fraction, str]]:
    """Numbers with the word after them: 2 and week of `two weeks`."""
    for number, word in _AMOUNT.findall(_ENDLESS.sub(" ", question.lower())):
        value = UNITS.get(number, TENS.get(number))
        yield Fraction(number.replace(",", "") if value is None else value), word


def _digit_numbers(text: str) -> Said:
    speaks_of_cents = "cent" in text
    for dollar, digits, suffix in _DIGITS.findall(text):
        value = Fraction(digits.replace(",", ""))
        yield value, "percent" if suffix in ("%", "percent") else "plain"
        if suffix in SCALES or suffix in ("k", "K"):
            yield value * SCALES.get(suffix, 1000), "plain"
        if suffix.startswith(("cent", "¢")):
            yield value / 100, "plain"
        if dollar and speaks_of_cents:  # $2 is 200 in a solution that counts cents
            yield value * 100, "plain"


def _word_numbers(words: list[str]) -> Said:
    position = 0
    while position < len(words):
        length, value = _cardinal(words, position)
        if length:
            position += length
            yield from _after_cardinal(value, words[position : position + 3])
            continue
        word = words[position].removesuffix("s")
        if word in PARTS:
            part = word in ("half", "quarter") or words[position - 1] in ("a", "an")
            kind: Kind = "plain" if part else "form"  # a third, or the third
            yield from ((Fraction(PARTS[word]), kind), (Fraction(1, PARTS[word]), kind))
        elif word in MULTIPLES or word.removesuffix("d") in MULTIPLES:
            yield Fraction(MULTIPLES.get(word, MULTIPLES.get(word.removesuffix("d"), 0))), "plain"
        position += 1


def _after_cardinal(value: int, following: list[str]) -> Said:
    """A number in words, also in `three fourths`, `two and a half`, `forty percent`, `ten cents`."""
    after = following[0].removesuffix("s") if following else ""
    yield Fraction(value), "percent" if after == "percent" else "plain"
    if after in PARTS:
        yield from ((Fraction(value, PARTS[after]), "plain"), (Fraction(PARTS[after]), "plain"))
    if after == "cent":
        yield Fraction(value, 100), "plain"
    added = [word for word in following if word not in ("and", "a", "one")]
    if after == "and" and added and added[0] in PARTS:
        yield value + Fraction(1, PARTS[added[0]]), "plain"


def _cardinal(words: list[str], start: int) -> tuple[int, int]:
    """How many words from `start` spell a whole number, and which; `(0, 0)` if none."""
    total = current = length = 0
    for index in range(start, len(words)):
        word = words[index]
        tens_before = current % 100 in range(20, 100, 10)
        if word in UNITS and (current % 100 == 0 or (tens_before and UNITS[word] < 10)):
            current += UNITS[word]
        elif word in TENS and current % 100 == 0:
            current += TENS[word]
        elif word == "hundred" and current < 100:
            current = max(current, 1) * 100
        elif word in SCALES and word != "hundred":
            total, current = total + max(current, 1) * SCALES[word], 0
        elif word == "and" and length and words[index - 1] in SCALES:
            continue  # `two hundred and five`; the length grows only if a number follows
        else:
            break
        length = index - start + 1
    return length, total + current
