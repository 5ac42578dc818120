"""The numbers a question says, in digits, words, fractions and percents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Literal

from partway.execution.variation import TENS, UNITS

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
    """Numbers with the word behind them: 2 and week of `two weeks`."""
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
