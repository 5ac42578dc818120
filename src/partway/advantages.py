"""Policy gradients as weights: what each of a problem's n samples counts, given all their rewards.

The gradient of a step is the sum over samples of weight times the gradient of log P(sample). One update is
made per batch, with samples of the very weights that are updated, so no ratio of probabilities is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from statistics import fmean, stdev

EPSILON = 1e-4  # TRL's, so that a group of nearly equal rewards does not explode


def grpo(rewards: Sequence[float]) -> list[float]:
    """A reward's distance from the group's mean in standard deviations (Shao et al. 2024, eq. 3), over n.

    >>> grpo([1.0, 1.0])
    [0.0, 0.0]
    """
    mean, spread = fmean(rewards), stdev(rewards)  # over n - 1, as TRL has it
    return [(reward - mean) / (spread + EPSILON) / len(rewards) for reward in rewards]


def rloo(rewards: Sequence[float]) -> list[float]:
    """A reward less the mean of the others (Ahmadian et al. 2024, eq. 8), over n.

    >>> rloo([1.0, 0.0])
    [0.5, -0.5]
    """
    n, total = len(rewards), sum(rewards)
    return [(reward - (total - reward) / (n - 1)) / n for reward in rewards]


def maxrl(rewards: Sequence[float]) -> list[float]:
    """A reward's share of all rewards less an equal share (Tajwar et al. 2026): log-likelihood, not reward.

    With 0/1 rewards the gradient is the mean of log P over right samples, less that over all as a baseline.
    Groups without a right one are left out, so it is that of log P(right) up to order n - 1, not n.

    >>> maxrl([1.0, 0.0, 0.0, 0.0]), maxrl([0.0, 0.0])
    ([0.75, -0.25, -0.25, -0.25], [0.0, 0.0])
    """
    n, total = len(rewards), sum(rewards)
    # All wrong: there is no right sample whose likelihood could be raised.
    return [reward / total - 1 / n for reward in rewards] if total else [0.0] * n


def pkpo(rewards: Sequence[float], k: int) -> list[float]:
    """What a sample adds to the best of k, over all k of the n samples that have it (Walder, Karkhanis 2025).

    This is their estimator with the baseline of the k - 1 others, of the gradient of the expected best of k.

    >>> pkpo([1.0, 0.0, 0.0], k=2)
    [0.6666666666666666, 0.0, 0.0]
    """
    n = len(rewards)
    assert 2 <= k <= n, "the baseline is the best of the other k - 1"
    gained = []
    # All sets of k have comb(n, k) equal chances; each is counted by its best other sample.
    for index, reward in enumerate(rewards):
        others = sorted([*rewards[:index], *rewards[index + 1 :]])
        # comb(place, k - 2) sets of k - 1 others have this one as their best.
        gained.append(sum(comb(place, k - 2) * max(0.0, reward - best) for place, best in enumerate(others)))
    return [gain / comb(n, k) for gain in gained]
