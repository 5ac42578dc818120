"""MLE, MLE-Aug, MML and beta-MML (the paper's Table 1), each a function of one problem's log P(y|x).

`log_probs_S` runs over the targets of one problem, the reference first; the result is a scalar to minimise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from partway.errors import ConfigError

NORMALIZATIONS = ("sum", "length", "solutions")


def mle(log_probs_S: Tensor) -> Tensor:
    """-log P(y*|x): the first target is the reference, the others are ignored."""
    return -log_probs_S[0]


def mle_aug(log_probs_S: Tensor) -> Tensor:
    """-sum over B of log P(y|x): every target has the same weight in the gradient."""
    return -log_probs_S.sum()


def mml(log_probs_S: Tensor) -> Tensor:
    """-log of the sum over B of P(y|x): a target's weight in the gradient is its share of that sum."""
    return beta_mml(log_probs_S, beta=1.0)


def beta_mml(log_probs_S: Tensor, beta: float = 0.25) -> Tensor:
    """-(1/beta) log of the sum over B of P(y|x)^beta: MML at beta = 1, MLE-Aug's balance as beta -> 0."""
    best = log_probs_S.max().detach()  # apart, or its rounding would be an error of every weight
    return -best - torch.logsumexp(beta * (log_probs_S - best), dim=0) / beta


OBJECTIVES: dict[str, Callable[[Tensor], Tensor]] = {
    "mle": mle,
    "mle_aug": mle_aug,
    "mml": mml,
    "beta_mml": beta_mml,
}


@dataclass(frozen=True)
class Objective:
    """One of Table 1's losses with its normalisation, called on one problem's log-probs and target lengths.

    `length` divides each target's log-prob by its number of tokens; `solutions` turns the sum over B inside
    the objective into a mean (for MML and beta-MML the loss moves by a constant, the gradient stays).
    """

    name: str
    beta: float = 0.25
    normalization: str = "sum"

    @property
    def couples(self) -> bool:
        """Whether the weight of one target in the gradient depends on the log-probs of the others."""
        return self.name in ("mml", "beta_mml")

    def __call__(self, log_probs_S: Tensor, lengths_S: Tensor) -> Tensor:
        if self.normalization == "length":
            log_probs_S = log_probs_S / lengths_S
        loss = (
            beta_mml(log_probs_S, self.beta)
            if self.name == "beta_mml"
            else OBJECTIVES[self.name](log_probs_S)
        )
        return self._mean(loss, len(log_probs_S)) if self.normalization == "solutions" else loss

    def _mean(self, loss: Tensor, solutions: int) -> Tensor:
        if self.name == "mle_aug":
            return loss / solutions
        exponent = {"mle": 0.0, "mml": 1.0, "beta_mml": 1 / self.beta}[self.name]
        return loss + exponent * math.log(solutions)


def objective(name: str, beta: float = 0.25, normalization: str = "sum") -> Objective:
    """Look an objective up by its name in the paper's Table 1.

    >>> objective("mml").couples
    True
    >>> objective("mlm")
    Traceback (most recent call last):
    partway.errors.ConfigError: objective is 'mlm', expected one of mle, mle_aug, mml, beta_mml
    """
    if name not in OBJECTIVES:
        raise ConfigError(f"objective is {name!r}, expected one of {', '.join(OBJECTIVES)}")
    if not 0 < beta <= 1:
        raise ConfigError(f"mml_beta is {beta}, expected a number above 0 and up to 1; try 0.25")
    if normalization not in NORMALIZATIONS:
        raise ConfigError(
            f"loss_normalization is {normalization!r}, expected one of {', '.join(NORMALIZATIONS)}"
        )
    return Objective(name, beta, normalization)
