"""Sentences with room for numbers, people and words.

{n:3..12}            a number called n (see `amounts`)
{y:3..12 pears than x:apples}   y pears, or 3 more pears than apples, twice as many pears as apples ...
@A  @A's  @him       the main person: name or pronoun, as fits; @A! is always the name
@B  @B's             another person, by name
@toy  @toys          a word drawn for the story, and its plural
[buys|gets]          either
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from random import Random

from storyproblems.amounts import Amount, parse_amount
from storyproblems.dice import chance, pick
from storyproblems.language import Person, plural

PRONOUN = 0.7

_PART = re.compile(r"\{(?P<slot>\w+)(:(?P<spec>[^}]*))?\}|\[(?P<choice>[^]]*)\]|@(?P<word>\w+(?:'s|!)?)")
_COMPARISON = re.compile(r"\{(\w+):(\$?)(\d+)\.\.(\d+)([^}]*?) than (\w+):([^}]*)\}")


@dataclass(frozen=True, slots=True)
class Slot:
    """Room for the number called `name`."""

    name: str


@dataclass(frozen=True, slots=True)
class Word:
    """A person or a word of the story, by its key."""

    key: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Wordings that mean the same."""

    options: tuple[Template, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """Text, slots, words and choices in order, and what each slot may hold."""

    parts: tuple[str | Slot | Word | Choice, ...]
    amounts: Mapping[str, Amount]


@cache
def parse_template(text: str) -> Template:
    """The template that `text` spells."""
    parts: list[str | Slot | Word | Choice] = []
    amounts: dict[str, Amount] = {}
    end = 0
    for match in _PART.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        if match["slot"]:
            parts.append(Slot(match["slot"]))
            if match["spec"]:
                amounts[match["slot"]] = parse_amount(match["spec"])
        elif match["word"]:
            parts.append(Word(match["word"]))
        else:
            parts.append(Choice(tuple(parse_template(option) for option in match["choice"].split("|"))))
    parts.append(text[end:])
    return Template(tuple(part for part in parts if part), amounts)


def comparisons(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The ways to say a text with a comparison slot, each with the rules that its quantity then follows.

    >>> list(comparisons("He has {y:3..9 pears than x:apples}."))[3]
    ('He has {times_y:times} as many pears as apples.', ('y = x * times_y', 'y >= 3', 'y <= 18'))
    """
    match = _COMPARISON.search(text)
    if match is None:
        yield text, ()
        return
    name, sign, low, high, noun, other, rest = match.groups()
    before, after = text[: match.start()], text[match.end() :]
    less, much, step = ("less", "much", "$1..6") if sign else ("fewer", "many", "2..12")
    yield f"{before}{{{name}:{sign}{low}..{high}}}{noun}{after}", ()
    # A compared quantity follows from another, so it may be larger than one told as a number.
    bounds = (f"{name} >= {low}", f"{name} <= {2 * int(high)}")
    for said, formula in (
        (f"{{more_{name}:{step}}} more{noun} than", f"{other} + more_{name}"),
        (f"{{less_{name}:{step}}} {less}{noun} than", f"{other} - less_{name}"),
        (f"{{times_{name}:times}} as {much}{noun} as", f"{other} * times_{name}"),
        (f"{{part_{name}:part {other}}} as {much}{noun} as", f"{other} / part_{name}"),
    ):
        yield f"{before}{said} {rest}{after}", (f"{name} = {formula}", *bounds)


def fill(text: str, words: Mapping[str, str]) -> str:
    """A phrase with its words filled in.

    >>> fill("the other @toys", {"toy": "box"})
    'the other boxes'
    """
    return re.sub(r"@(\w+)", lambda match: spelled(match[1], words), text)


def spelled(key: str, words: Mapping[str, str]) -> str:
    """The word for a key, or its plural for a key with an s."""
    return words[key] if key in words else plural(words[key.removesuffix("s")])


class Narrator:
    """Says templates one after another and knows who has been mentioned."""

    def __init__(self, rng: Random, people: tuple[Person, Person]) -> None:
        self.rng = rng
        self.first, self.second = people
        self._is_introduced = False
        self._first_is_near = False  # named in this sentence
        self._second_is_near = False
        self._second_is_known = False

    def tell(self, template: Template, words: Mapping[str, str], numbers: Mapping[str, str]) -> str:
        """The text of a template."""
        self._first_is_near = self._second_is_near = False
        return "".join(self._parts(template, words, numbers))

    def _parts(
        self, template: Template, words: Mapping[str, str], numbers: Mapping[str, str]
    ) -> Iterator[str]:
        for part in template.parts:
            match part:
                case str():
                    yield part
                case Slot(name):
                    yield numbers[name]
                case Choice(options):
                    yield from self._parts(pick(self.rng, options), words, numbers)
                case Word("A" | "A's" | "A!" | "him" as key):
                    yield self._first_person(key)
                case Word("B" | "B's" as key):
                    self._second_is_near = self._second_is_known = True
                    yield self.second.known + key.removeprefix("B")
                case Word(key):
                    yield spelled(key, words)

    def _first_person(self, key: str) -> str:
        if not self._is_introduced:
            called = self.first.introduced
        elif (
            key != "A!" and self._a_pronoun_is_clear() and (self._first_is_near or chance(self.rng, PRONOUN))
        ):
            return self.first.pronoun({"A": "he", "A's": "his", "him": "him"}[key])
        else:
            called = self.first.known
        self._is_introduced = self._first_is_near = True
        return called + ("'s" if key == "A's" else "")

    def _a_pronoun_is_clear(self) -> bool:
        if self.first.is_female != self.second.is_female:  # `she` can be only one of them
            return True
        return not self._second_is_known or (self._first_is_near and not self._second_is_near)
