"""Metrics of n samples of a problem: pass@k, maj@k and others, computed exactly on integer counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import comb


@lru_cache(maxsize=65_536)
def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that k of n samples, c of them right, contain a right one: 1 - C(n-c, k) / C(n, k).

    >>> pass_at_k(4, 1, 2), pass_at_k(100, 0, 10), pass_at_k(100, 51, 50)
    (0.5, 0.0, 1.0)
    """
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"pass@{k} with {c} of {n} samples right, expected 1 <= k <= n and 0 <= right <= n")
    # On integers: the product form in floats loses digits for large n, and this is exact.
    subsets = comb(n, k)
    return (subsets - comb(n - c, k)) / subsets


def maj_at_k(votes: Mapping[str, int], right: frozenset[str], silent: int, ks: Sequence[int]) -> list[float]:
    """The chance, for each k, that the answer most frequent among k of the samples is right.

    `votes` counts the samples of each answer; the `silent` ones gave none and cast no vote. Every subset of
    k samples counts alike. Answers that tie share the vote: of two, a right one is worth one half.

    >>> maj_at_k({"12": 2, "7": 2}, frozenset({"12"}), silent=0, ks=[1, 4])
    [0.5, 0.5]
    """
    n = silent + sum(votes.values())
    chances = [Fraction(0)] * len(ks)
    # Several answers can be right, such as 0.5 and 0.50001: the check has a tolerance, votes have none.
    for answer in sorted(right & votes.keys()):
        others = tuple(sorted((votes[other] for other in votes if other != answer), reverse=True))
        wins = _winning_subsets(votes[answer], others, silent, tuple(ks))
        chances = [chance + won / comb(n, k) for chance, won, k in zip(chances, wins, ks, strict=True)]
    return [float(chance) for chance in chances]


@lru_cache(maxsize=65_536)
def _winning_subsets(
    own: int, others: tuple[int, ...], silent: int, ks: tuple[int, ...]
) -> tuple[Fraction, ...]:
    """For each k, in how many subsets of k samples the answer with `own` votes wins; a tie of m counts 1/m.

    For each number j of own votes, subsets of the other samples are counted by generating functions: the
    coefficient of x^s is the number of ways to take s of them so that no other answer gets more than j.
    Coefficients are at most 2^n, so a polynomial is one integer, n + 1 bits per coefficient, and
    multiplying polynomials is multiplying integers.
    """
    width = own + sum(others) + silent + 1
    # Of a subset fewer than the largest k are others: cutting off higher powers bounds the integers.
    mask = (1 << width * max(ks, default=0)) - 1
    totals = [Fraction(0)] * len(ks)
    for j in range(1, min(own, max(ks, default=0)) + 1):
        rivals = [votes for votes in others if votes >= j]  # those with fewer can neither win nor tie
        free = silent + sum(others) - sum(rivals)
        # by_ties[t]: subsets in which exactly t rivals have j votes too; at first none is looked at.
        by_ties = [_polynomial(free, free, width) & mask]
        for votes in rivals:
            behind = _polynomial(votes, j - 1, width)
            level = comb(votes, j) << width * j
            grown = [ways * behind & mask for ways in by_ties] + [0]
            for ties, ways in enumerate(by_ties):
                grown[ties + 1] += ways * level & mask
            by_ties = grown if grown[-1] else grown[:-1]
        for index, k in enumerate(ks):
            if k >= j:
                # The coefficient of x^(k - j): the other samples of the subset.
                shares = [ways >> width * (k - j) & (1 << width) - 1 for ways in by_ties]
                shared = sum((Fraction(w, ties + 1) for ties, w in enumerate(shares) if w), Fraction(0))
                totals[index] += comb(own, j) * shared
    return tuple(totals)


def _polynomial(n: int, degree: int, width: int) -> int:
    """(1 + x)^n up to x^degree."""
    return sum(comb(n, power) << width * power for power in range(degree + 1))
