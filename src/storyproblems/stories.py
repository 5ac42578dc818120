"""Stories: situations told in words, with numbers that make sense and the graph of their quantities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from storyproblems.dice import chance, pick
from storyproblems.drafts import Draft, draw_numbers, quantity_graph
from storyproblems.expressions import Value
from storyproblems.planning import Chapter, plan_chapters
from storyproblems.quantities import ANSWER, QuantityGraph
from storyproblems.situation import Situation
from storyproblems.telling import tell
from storyproblems.templates import Template, Word, parse_template

NUMBER_DRAWS = 40  # most draws make no sense: three and a half people, a negative price
MAX_WORDS = 70


@dataclass(frozen=True, slots=True)
class Story:
    """A question in words and the quantities after it."""

    situation: str
    question: str
    answer: Value
    graph: QuantityGraph
    distractors: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Difficulty:
    """How long stories get and what makes them harder to read."""

    lengths: tuple[int, ...]  # operations, drawn uniformly
    distraction: float
    cents: float


DIFFICULTIES = {
    "easy": Difficulty((2, 2, 3), distraction=0.0, cents=0.0),
    "medium": Difficulty((3, 4, 4, 5), distraction=0.2, cents=0.3),
    "hard": Difficulty((5, 6, 6, 7, 8), distraction=0.35, cents=0.4),
    "mixed": Difficulty((2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7, 8), distraction=0.2, cents=0.25),
}

NOISE = (
    "@A knows {noise:10..40} songs.",
    "@A has {noise:2..4} [brothers|sisters|cats].",
    "It is {noise:2..9} miles from @A's house to the [shop|school].",
    "@A lives in a house with {noise:3..9} rooms.",
    "The day before, @A got up at {noise:5..9} o'clock.",
)


def draw_story(
    situation: Situation, sequels: Mapping[str, Sequence[Situation]], difficulty: Difficulty, rng: Random
) -> Story | None:
    """A story that opens with this situation; None if what was drawn does not work out."""
    chapters = plan_chapters(situation, sequels, pick(rng, difficulty.lengths), rng)
    if chapters is None:
        return None
    has_cents = chance(rng, difficulty.cents)
    noise = None
    if chance(rng, difficulty.distraction) and _has_main_person(chapters):  # whom noise is about
        noise = parse_template(pick(rng, situation.noise or NOISE))
    for _ in range(NUMBER_DRAWS):
        draft = draw_numbers(chapters, has_cents, rng)
        if draft is not None:
            return _story(chapters, draft, noise, rng)
    return None


def _has_main_person(chapters: Sequence[Chapter]) -> bool:
    templates = (clause.template for chapter in chapters for clause in chapter.clauses)
    return any(Word("A") in template.parts or Word("A's") in template.parts for template in templates)


def _story(chapters: Sequence[Chapter], draft: Draft, noise: Template | None, rng: Random) -> Story | None:
    distraction = Draft()
    if noise:
        distraction.draw_amounts(noise, False, rng)
    question = tell(chapters, draft.said(rng) | distraction.said(rng), noise, rng)
    if len(question.split()) > MAX_WORDS:
        return None
    graph = quantity_graph(chapters, draft)
    return Story(chapters[0].situation.name, question, draft.values[ANSWER], graph, distraction.values)
