"""Guessing ahead: the problems' kept solutions, their drafts, say what a sample will probably write next.

The last few tokens of a sample are looked up in the solutions its problem has kept, then in those of the
problems beside it, and what followed them there is the guess. A forward reads a row's guessed tokens along
with its last one, so it gives the distribution after each of them, and a sample goes as far as it draws what
was guessed. A guess decides how much is computed ahead, never what is drawn.

Reading a guessed token costs a forward a little; if it is right, it saves the row that much, and a share of
the forward. So a few rows guess far, many rows guess little, and guesses that are mostly wrong end guessing.
docs/performance.md says what that gains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partway.models.engine import Request
from partway.models.text import Codec
from partway.sampling.sampling_task import AnswerWatch

LONGEST_GUESS = 8
# Tokens that are read in the time a forward takes apart from reading: launching, weights. On a GPU this is
# arithmetic, not measured: reading 16-bit weights takes as long as computing with them for some 150 tokens,
# and in a small model launching takes longer than both.
FORWARD, FORWARD_ON_GPU = 60, 300
TRIED = 200  # guesses before they are judged
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


@dataclass
class DraftGuesser:
    """Guesses what follows in rows of at most `longest` tokens.

    `longest` is the length up to which the model is known to go by positions and masks given to it.
    """

    drafts: Drafts
    longest: int
    is_end: NDArray[np.bool_]
    watch: AnswerWatch | None
    forward: int = FORWARD
    guessed: int = 0
    right: int = 0

    def __post_init__(self) -> None:
        may_end = self.is_end if self.watch is None else self.is_end | self.watch.has_newline
        self.may_end = frozenset(np.flatnonzero(may_end).tolist())

    def write(self, rows: NDArray[Any], tokens_RL: NDArray[np.int32], cached: int, *, ragged: bool) -> None:
        """Set how many tokens are guessed of each row, and write them after its own.

        `cached` is how many tokens of the longest row the model has read. In a `ragged` forward each row has
        as many as it likes; else all are read equally many tokens of, so all of them decide how many.
        """
        rows["guessed"] = 0
        least = 1 / (1 + self.forward / len(rows))  # the chance from which a guess pays
        longest = min(LONGEST_GUESS, self.longest - cached - 1)
        if longest < 1 or (self.guessed > TRIED and self.right < least * self.guessed):
            return
        chances_RQ = np.zeros((len(rows), longest))
        for row, (prompt, depth, limit) in enumerate(rows[["prompt", "depth", "limit"]].tolist()):
            drawn, length = tokens_RL[row, :depth].tolist(), min(longest, limit - depth - 1)
            if guess := list(self._guess(prompt, drawn, length)):
                tokens_RL[row, depth : depth + len(guess)], chances_RQ[row, : len(guess)] = zip(
                    *guess, strict=True
                )
        if ragged:
            rows["guessed"] = (chances_RQ > least).sum(1)
        else:
            # A guess is read of all rows or of none, so what counts is how often it is right in the mean.
            count = int((chances_RQ.mean(0) > least).cumprod().sum())
            rows["guessed"] = (chances_RQ[:, :count] > 0).sum(1)
        self.guessed += int(rows["guessed"].sum())

    def _guess(self, prompt: int, drawn: list[int], length: int) -> Iterator[tuple[int, float]]:
        """Tokens to follow, up to one that would end the solution, and their chances to be drawn."""
        guess, total = list[int](), 1.0
        for token, chance in self.drafts.guess(prompt, drawn[-CONTEXT:], length):
            guess.append(token)
            # What ends a solution is not read ahead: nothing is drawn after it.
            if token in self.may_end and self._ends([*drawn, *guess]):
                return
            total *= chance
            yield token, total

    def _ends(self, tokens: list[int]) -> bool:
        return bool(self.is_end[tokens[-1]]) or (self.watch is not None and self.watch.closes(tokens))


def guesser(
    requests: Sequence[Request],
    codec: Codec,
    longest: int,
    is_end: NDArray[np.bool_],
    watch: AnswerWatch | None,
    *,
    on_gpu: bool,
) -> DraftGuesser | None:
    """Who guesses what completions of these requests will be; None if they have no drafts."""
    if not any(request.drafts for request in requests):
        return None
    drafts = Drafts(
        [codec.steps(request.prefix) for request in requests],
        [[tuple(codec.steps(draft)) for draft in request.drafts] for request in requests],
    )
    return DraftGuesser(drafts, longest, is_end, watch, FORWARD_ON_GPU if on_gpu else FORWARD)
