"""English for stories: names and pronouns, plurals, articles, and how amounts are said."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from storyproblems.dice import chance, pick
from storyproblems.expressions import Value

GIRLS = ["Ana", "Clara", "Ella", "Grace", "Ines", "Julia", "Lena", "Maya", "Nora", "Rosa", "Sara", "Zoe"]
BOYS = ["Adam", "Ben", "Carlos", "Daniel", "Emil", "Felix", "Hugo", "Jack", "Leo", "Omar", "Sam", "Tom"]
IRREGULAR = {"child": "children", "person": "people", "shelf": "shelves", "loaf": "loaves", "sheep": "sheep"}
NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
TIMES = {2: "twice", 3: "three times", 4: "four times", 5: "five times"}
KNOWN_BY_TRADE = 0.4  # of the main persons in situations that have trades
PARTS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth"}


@dataclass(frozen=True, slots=True)
class Person:
    """Someone in a story: by name, or as `a farmer` who becomes `the farmer`."""

    name: str
    is_female: bool
    has_trade: bool = False

    @property
    def introduced(self) -> str:
        """How the person is first called."""
        return f"a {self.name}" if self.has_trade else self.name

    @property
    def known(self) -> str:
        """How the person is called from then on."""
        return f"the {self.name}" if self.has_trade else self.name

    def pronoun(self, form: str) -> str:
        """`he`, `him` or `his`, or what these are for her."""
        return {"he": "she", "him": "her", "his": "her"}[form] if self.is_female else form


def draw_people(rng: Random, trades: tuple[str, ...]) -> tuple[Person, Person]:
    """The main person, who may be known by a trade, and another one."""
    first = _draw_person(rng)
    second = _draw_person(rng)
    while second.name == first.name:
        second = _draw_person(rng)
    if trades and chance(rng, KNOWN_BY_TRADE):
        first = Person(pick(rng, trades), first.is_female, has_trade=True)
    return first, second


def _draw_person(rng: Random) -> Person:
    is_female = chance(rng, 0.5)
    return Person(pick(rng, GIRLS if is_female else BOYS), is_female)


def plural(noun: str) -> str:
    """The plural of a noun, of its first noun if it is a phrase.

    >>> plural("box"), plural("loaf of bread"), plural("story")
    ('boxes', 'loaves of bread', 'stories')
    """
    noun, of, rest = noun.partition(" of ")
    before, _, last = noun.rpartition(" ")
    if last in IRREGULAR:
        last = IRREGULAR[last]
    elif last.endswith(("s", "x", "ch", "sh", "to")):
        last += "es"
    elif last.endswith("y") and last[-2] not in "aeiou":
        last = last[:-1] + "ies"
    else:
        last += "s"
    return f"{before} {last}".lstrip() + of + rest


def polished(text: str) -> str:
    """The text with `an` before vowels, single spaces, and capitals where sentences start.

    >>> polished("ben buys a apple . a hour later  he is home.")
    'Ben buys an apple. An hour later he is home.'
    """
    text = re.sub(r" +(?=[ .,?])", "", text)
    # Not before u: a unit, a uniform. Numerals are read aloud: an 8, an 11, an 18.
    text = re.sub(r"\b([Aa]) (?=[aeio]|hour|8|11\b|18\b)", r"\1n ", text)
    return re.sub(r"(^|[.?!] )([a-z])", lambda match: match[1] + match[2].upper(), text)


def dollars(value: Value) -> str:
    """An amount of money: `$3`, or `$3.50`."""
    return f"${value:.2f}" if value != int(value) else f"${int(value)}"


def numeral(value: Value) -> str:
    """A number in digits."""
    return str(int(value)) if value == int(value) else f"{value:g}"
