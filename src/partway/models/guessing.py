"""Guessing ahead: how many draft tokens are read behind the last token of each row, and when they do not pay.

Reading a guessed token costs a forward a little; if it is right, it saves the row that much, and a share of
the forward. So a few rows guess far, many rows guess little, and guesses that are mostly wrong end guessing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partway.models.drafts import CONTEXT, Drafts
from partway.models.stopping import AnswerWatch

LONGEST_GUESS = 8
FORWARD = 60  # tokens that are read in the time a forward takes apart from reading: launching, weights
TRIED = 200  # guesses before they are judged


@dataclass
class Guesser:
    """Guesses what follows in rows of at most `longest` tokens.

    `longest` is the length up to which the model is known to go by positions and masks given to it.
    """

    drafts: Drafts
    longest: int
    is_end: NDArray[np.bool_]
    watch: AnswerWatch | None
    guessed: int = 0
    right: int = 0

    def __post_init__(self) -> None:
        may_end = self.is_end if self.watch is None else self.is_end | self.watch.has_newline
        self.may_end = frozenset(np.flatnonzero(may_end).tolist())

    def write(self, rows: NDArray[Any], tokens_RL: NDArray[np.int32], cached: int, *, ragged: bool) -> None:
        """Set how many tokens are guessed of each row, and write them behind its own.

        `cached` is how many tokens of the longest row the model has read. In a `ragged` forward each row has
        as many as it likes; else all are read equally many tokens of, so all of them decide how many.
        """
        rows["guessed"] = 0
        least = 1 / (1 + FORWARD / len(rows))  # the chance from which a guess pays
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
            count = int((chances_RQ.mean(0) > least).cumprod().sum())
            rows["guessed"] = (chances_RQ[:, :count] > 0).sum(1)
        self.guessed += int(rows["guessed"].sum())

    def _guess(self, prompt: int, drawn: list[int], length: int) -> Iterator[tuple[int, float]]:
        """Tokens to follow, up to one that would end the solution, and their chances to be drawn."""
        guess, total = list[int](), 1.0
        for token, chance in self.drafts.guess(prompt, drawn[-CONTEXT:], length):
            guess.append(token)
            if token in self.may_end and self._ends([*drawn, *guess]):
                return
            total *= chance
            yield token, total

    def _ends(self, tokens: list[int]) -> bool:
        return bool(self.is_end[tokens[-1]]) or (self.watch is not None and self.watch.closes(tokens))
