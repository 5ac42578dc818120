"""Guessing ahead: the problems' kept solutions, their drafts, say what a sample will probably write next.

The last few tokens of a sample are looked up in the solutions its problem has kept, then in those of the
problems beside it, and what followed them there is the guess. A forward reads a row's guessed tokens along
with its last one, so it gives the distribution after each of them, and a sample goes as far as it draws what
was guessed. A guess decides how much is computed ahead, never what is drawn.

Reading a guessed token costs a forward a little; if it is right, it saves the row that much, and a share of
the forward. So a few rows guess far, many rows guess little, and guesses that are mostly wrong end guessing.
With the references as drafts, one sample each of 32 problems is drawn 2.65 times as fast, 100 samples each of
8 problems 1.43 times (`python -m benchmarks sample`, docs/performance.md has the setting).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from partway.learning.passes import uploaded
from partway.learning.token_tree import Integers
from partway.models.text import AnswerWatch, Codec
from partway.sample import Request
from partway.sampling.cache import RowCache
from partway.sampling.drawing import draw, fetched, to_draw_from
from partway.sampling.frontier import Children, Drawn, Frontier, SamplingTask, Streams
from partway.sampling.local_engine import TreeSampler, complete_on
from partway.sampling.samplers import Sampler
from partway.shortcuts.gaps import GappedRowCache

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
class Guesser:
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

    def write(
        self, rows: NDArray[Any], tokens_RL: NDArray[np.int32], cached: int, *, ragged: bool
    ) -> Integers:
        """Write what is guessed of each row after its own tokens; returns how many of each.

        `cached` is how many tokens of the longest row the model has read. In a `ragged` forward each row has
        as many as it likes; else all are read equally many tokens of, so all of them decide how many.
        """
        guessed_R: Integers = np.zeros(len(rows), np.int64)
        least = 1 / (1 + self.forward / len(rows))  # the chance from which a guess pays
        longest = min(LONGEST_GUESS, self.longest - cached - 1)
        if longest < 1 or (self.guessed > TRIED and self.right < least * self.guessed):
            return guessed_R
        chances_RQ = np.zeros((len(rows), longest))
        for row, (prompt, depth, limit) in enumerate(rows[["prompt", "depth", "limit"]].tolist()):
            drawn, length = tokens_RL[row, :depth].tolist(), min(longest, limit - depth - 1)
            if guess := list(self._guess(prompt, drawn, length)):
                tokens_RL[row, depth : depth + len(guess)], chances_RQ[row, : len(guess)] = zip(
                    *guess, strict=True
                )
        if ragged:
            guessed_R = (chances_RQ > least).sum(1)
        else:
            # A guess is read of all rows or of none, so what counts is how often it is right in the mean.
            count = int((chances_RQ.mean(0) > least).cumprod().sum())
            guessed_R = (chances_RQ[:, :count] > 0).sum(1)
        self.guessed += int(guessed_R.sum())
        return guessed_R

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


class GuessingFrontier(Frontier):
    """A frontier whose forwards read guesses along with the last token of each row.

    Axis Q runs over the tokens that a forward reads of each row.
    """

    def __init__(self, model: PreTrainedModel, task: SamplingTask, cache: Any, guesser: Guesser) -> None:
        super().__init__(model, task, cache)
        self.guesser = guesser
        self.guessed_R: Integers = np.zeros(0, np.int64)  # guesses, which stand after the row's own tokens

    def advance(self) -> list[tuple[int, Streams]]:
        """Extend every sample by the tokens that were guessed right and one more."""
        cached = self._longest_read()
        self.guessed_R = self.guesser.write(self.rows, self.tokens_RL, cached, ragged=self.unread)
        return super().advance()

    def _longest_read(self) -> int:
        """How many tokens of the longest row the model has read, or will have, its last one apart."""
        if self.unread:
            return max(len(self.task.prompts[number]) for number in self.rows["prompt"]) - 1
        return int(self.cache.lengths.max())

    def _ahead(self) -> Integers:
        """What a forward reads of each row, counted from its last token; the last guess again as padding."""
        count = 1 + int(self.guessed_R.max())
        ahead_RQ: Integers = np.minimum(np.arange(count), self.guessed_R[:, None])
        return ahead_RQ

    def _read_prompts(self) -> tuple[Tensor, Tensor, Tensor]:
        """All prompts in one row, each with its guesses after it."""
        texts = [
            [*self.task.prompts[number], *tokens[:count].tolist()]
            for number, tokens, count in zip(
                self.rows["prompt"], self.tokens_RL, self.guessed_R, strict=False
            )
        ]
        return self._read_packed(texts, self._ahead())

    def _forward(self) -> tuple[Tensor, Tensor, Tensor]:
        """The logits after the last token and the guesses of every row, row by row; and the `_numbers`."""
        ahead_RQ = self._ahead()
        count = ahead_RQ.shape[1]
        ids_RQ = self._tokens_ahead(ahead_RQ - 1).astype(np.int64)
        ids_RQ[:, 0] = self.rows["next"]
        if self.cache.span + count > self.guesser.longest:
            self.cache.close_gaps()
        seen = self.cache.seen(count)
        positions_RQ = self.cache.lengths[:, None] + ahead_RQ
        ids, positions, read, bits, *seen = uploaded(
            self.device, ids_RQ, positions_RQ, *self._numbers(count), *seen
        )
        mask = self.cache.mask(self.model, *seen)
        logits_RQV = self._run(
            ids, count, past_key_values=self.cache, position_ids=positions, attention_mask=mask
        )
        self.cache.step(count)
        self.tokens_computed += int((1 + self.guessed_R).sum())
        return to_draw_from(logits_RQV.flatten(0, 1)), read, bits

    def _tokens_ahead(self, ahead_RQ: Integers) -> NDArray[np.int32]:
        """Tokens of every row, counted from the first that is not drawn yet; past its guesses, any."""
        places_RQ = np.minimum(self.rows["depth"][:, None] + ahead_RQ, self.tokens_RL.shape[1] - 1)
        return self.tokens_RL[np.arange(len(self.rows))[:, None], places_RQ]

    def _draw_children(self, logits: Tensor, read: Tensor, bits: Tensor) -> Children:
        """Let every sample draw after each token of its row, and go as far as it draws what was guessed."""
        vocabulary, count = logits.shape[-1], len(logits) // len(self.rows)
        read, numbers = read.to(logits.device), bits.to(logits.device).view(torch.float64)
        drawn, log_probs = fetched(logits, read, draw(logits, self.task.settings, read, numbers))
        drawn_SQ, log_probs_SQ = drawn.reshape(-1, count), log_probs.reshape(-1, count)
        right_S = self._right_guesses(drawn_SQ)
        last = np.arange(len(right_S)), right_S
        # A child is a place in the flattened logits: after which read token, and which token is drawn there.
        keys_S = (self.rows_S * count + right_S) * vocabulary + drawn_SQ[last]
        keys_C, first_C, of_S = np.unique(keys_S, return_index=True, return_inverse=True)
        read_C, tokens_C = np.divmod(keys_C, vocabulary)
        parents_C, right_C = np.divmod(read_C, count)
        log_probs_C = log_probs_SQ.cumsum(1)[first_C, right_C]  # of right guesses and what follows them
        return Children(parents_C, right_C, tokens_C, log_probs_C, of_S)

    def _right_guesses(self, drawn_SQ: Integers) -> Integers:
        """How many of its row's guesses each sample has drawn."""
        places_Q = np.arange(drawn_SQ.shape[1] - 1)
        agrees_SQ = drawn_SQ[:, :-1] == self._tokens_ahead(places_Q[None])[self.rows_S]
        agrees_SQ &= places_Q < self.guessed_R[self.rows_S][:, None]
        right_S: Integers = agrees_SQ.cumprod(1).sum(1)
        farthest_R = np.zeros(len(self.rows), np.int64)
        np.maximum.at(farthest_R, self.rows_S, right_S)
        self.guesser.right += int(farthest_R.sum())
        return right_S

    def _append(self, ahead_R: Integers, tokens_R: Integers, log_probs_R: NDArray[np.float64]) -> None:
        """Add the right guesses and a token to every row; wrong ones become gaps."""
        self.cache.keep(1 + ahead_R)
        super()._append(ahead_R, tokens_R, log_probs_R)


@dataclass(frozen=True)
class GuessingSampler:
    """The sampling tree, reading ahead what these drafts say."""

    tree: TreeSampler
    drafts: Drafts
    longest: int
    name = "guessing tree"
    is_checked = False

    @property
    def fallback(self) -> Sampler:
        """The tree that does not guess."""
        return self.tree

    def hindrance(self, model: PreTrainedModel) -> str | None:
        """What hinders the tree."""
        return self.tree.hindrance(model)

    def complete(self, model: PreTrainedModel, task: SamplingTask) -> Iterator[Drawn]:
        """Rows are admitted as others end."""
        forward = FORWARD if model.device.type == "cpu" else FORWARD_ON_GPU
        guesser = Guesser(self.drafts, self.longest, task.is_end, task.watch, forward)
        cache = GappedRowCache if self.tree.cache is RowCache else self.tree.cache
        return complete_on(GuessingFrontier(model, task, cache(task.budget), guesser), task)


def sampler(usual: Sampler, requests: Sequence[Request], codec: Codec, longest: int) -> Sampler:
    """The usual sampler, guessing in rows of up to `longest` tokens where requests have drafts."""
    if not (isinstance(usual, TreeSampler) and any(request.drafts for request in requests)):
        return usual
    drafts = Drafts(
        [codec.steps(request.prefix) for request in requests],
        [[tuple(codec.steps(draft)) for draft in request.drafts] for request in requests],
    )
    return GuessingSampler(usual, drafts, longest)
