"""Planning a story: which clauses tell its quantities, and which sequels take it to the wanted length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from storyproblems.dice import pick
from storyproblems.situation import Ask, Clause, Situation

ATTEMPTS = 30
MAX_CHAPTERS = 4  # longer stories are hard to follow


@dataclass(frozen=True, slots=True)
class Chapter:
    """A situation as one story uses it: the clauses that tell it and the question it leads to."""

    situation: Situation
    clauses: tuple[Clause, ...]
    ask: Ask

    @property
    def operations(self) -> int:
        """How many operations it takes to answer the question."""
        return self.ask.formula.operations + sum(clause.operations for clause in self.clauses)


def plan_chapters(
    opening: Situation, sequels: Mapping[str, Sequence[Situation]], length: int, rng: Random
) -> list[Chapter] | None:
    """Chapters that take `length` operations together; None if none were found."""
    for _ in range(ATTEMPTS):
        chapters = [_draw_chapter(opening, rng)]
        missing = length - chapters[0].operations
        while missing > 0 and len(chapters) < MAX_CHAPTERS:
            used = [chapter.situation for chapter in chapters]
            options = [sequel for sequel in sequels.get(chapters[-1].ask.kind, ()) if sequel not in used]
            if not options:
                break
            chapters.append(_draw_chapter(pick(rng, options), rng))
            missing -= chapters[-1].operations
        if missing == 0:  # exactly so long, or drawn anew
            return chapters
    return None


def _draw_chapter(situation: Situation, rng: Random) -> Chapter:
    """A question about the situation and clauses for every quantity it needs."""
    ask = pick(rng, situation.asks)
    needed = set(ask.formula.names)
    clauses: list[Clause] = []
    for role, options in reversed(situation.clauses.items()):  # a clause needs only what is told before it
        if not role or not needed.isdisjoint(role.split()):
            clauses.append(pick(rng, options))
            needed |= clauses[-1].needs
    return Chapter(situation, tuple(reversed(clauses)), ask)
