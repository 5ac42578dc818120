"""Drafts: the problems' kept solutions say what a sample will probably write next.

The last few tokens of a sample are looked up in the solutions its problem has kept, then in those of the
problems beside it, and what followed them there is the guess. A forward reads a row's guessed tokens along
with its last one, so it gives the distribution behind each of them, and a sample goes as far as it draws what
was guessed. A guess decides how much is computed ahead, never what is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

CONTEXT = 4  # tokens looked up, at most
START = -1  # stands before the first token of a solution
SURE, UNSURE = 0.9, 0.55  # how often what follows a whole context in a kept solution is right, and else

Tokens = tuple[int, ...]
Followers = dict[Tokens, int]  # a few tokens to the one that followed them last


@lru_cache(maxsize=1 << 14)
def followers(tokens: Tokens) -> Followers:
    """What follows what in one solution, its last token apart: that one ends it, and need not be read ahead.

    >>> followers((5, 6, 7))
    {(-1,): 5, (-1, -1): 5, (5,): 6, (-1, 5): 6, (-1, -1, 5): 6}
    """
    padded = (START, START, *tokens[:-1])
    return {
        padded[end - size : end]: padded[end]
        for end in range(2, len(padded))
        for size in range(1, min(CONTEXT, end) + 1)
    }


class Drafts:
    """The kept solutions of some prompts as tokens, each with the prefix that its samples continue."""

    def __init__(self, prefixes: Sequence[Sequence[int]], kept: Sequence[Sequence[Tokens]]) -> None:
        self.prefixes = [(START, START, *prefix)[-CONTEXT:] for prefix in prefixes]
        self.own = [_joined(map(followers, solutions)) for solutions in kept]
        self.of_all = _joined(self.own)

    def guess(self, prompt: int, drawn: Sequence[int], length: int) -> Iterator[tuple[int, float]]:
        """At most `length` tokens to follow those drawn so far, each with the chance that it is right.

        The chances hold for a sample that draws the guesses before it.
        """
        context = (*self.prefixes[prompt], *drawn)[-CONTEXT:]
        for _ in range(length):
            token = self.own[prompt].get(context)
            chance = SURE
            if token is None:
                token, chance = self._next(prompt, context), UNSURE
            if token is None:
                return
            yield token, chance
            context = (*context, token)[-CONTEXT:]

    def _next(self, prompt: int, context: Tokens) -> int | None:
        # One token of context says little about this problem: other problems' longer matches go first.
        for table, least in ((self.own[prompt], 2), (self.of_all, 1)):
            for start in range(len(context) - least + 1):
                token = table.get(context[start:])
                if token is not None:
                    return token
        return None


def _joined(tables: Iterable[Followers]) -> Followers:
    joined: Followers = {}
    for table in tables:
        joined.update(table)
    return joined
