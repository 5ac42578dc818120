"""Telling a story: sentences in order, with a distraction perhaps, and the question at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from storyproblems.dice import chance, pick, shuffled
from storyproblems.language import Person, draw_people, polished
from storyproblems.planning import Chapter
from storyproblems.templates import Narrator, Template, fill

IF_QUESTION = 0.3


def tell(chapters: Sequence[Chapter], numbers: Mapping[str, str], noise: Template | None, rng: Random) -> str:
    """The question in words; `noise` is a sentence that does not matter."""
    people = draw_people(rng, _options(chapters[0].situation.trades))
    narrator = Narrator(rng, people)
    script = _script(chapters, rng)
    if noise:
        place = pick(rng, range(1, len(script)))  # after the first sentence, before the question
        script.insert(place, (noise, {}))
    *sentences, question = (narrator.tell(template, words, numbers) for template, words in script)
    ends_in_noise = script[-2][0] is noise
    if not ends_in_noise and chance(rng, IF_QUESTION) and _can_be_a_condition(sentences[-1], question):
        condition = _lowered(sentences.pop(), people).removesuffix(".")
        question = f"If {condition}, {_lowered(question, people)}"
    return polished(" ".join([*sentences, question]))


def _script(chapters: Sequence[Chapter], rng: Random) -> list[tuple[Template, Mapping[str, str]]]:
    """What to tell, the final question last, each with the words drawn for its chapter."""
    script: list[tuple[Template, Mapping[str, str]]] = []
    words: dict[str, str] = {}
    for chapter in chapters:
        ask = chapter.ask
        words = words | _draw_words(chapter.situation.words, rng)
        script.extend((clause.template, words) for clause in chapter.clauses)
        question = (ask.template, words)
        # What the next chapter goes on from; its own words come on top.
        words = words | {"it": fill(ask.it, words), "item": fill(ask.item, words)}
    return [*script, question]


def _draw_words(pools: Mapping[str, str], rng: Random) -> dict[str, str]:
    """A word for each key; keys that share a pool get different words."""
    words: dict[str, str] = {}
    for keys, pool in pools.items():
        words.update(zip(keys.split(), shuffled(rng, _options(pool)), strict=False))
    return words


def _options(pool: str) -> tuple[str, ...]:
    return tuple(pool.split("|")) if pool else ()


def _can_be_a_condition(sentence: str, question: str) -> bool:
    """Whether `If`, the sentence and the question make one sentence."""
    is_plain = ". " not in sentence and ", " not in sentence and ", " not in question and ". " not in question
    return is_plain and not sentence.startswith(("Then ", "Later ", "If "))


def _lowered(sentence: str, people: tuple[Person, Person]) -> str:
    """The sentence without its capital, unless that belongs to a name."""
    is_name = any(sentence.startswith(person.name) for person in people)
    return sentence if is_name else sentence[:1].lower() + sentence[1:]
