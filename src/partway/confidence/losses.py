"""Objectives against overconfidence, each MLE-Aug with one change; all are exact on the learning tree.

With `self_sampling: none` a buffer holds the reference alone, and each of them is the change to plain MLE.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from partway.errors import ConfigError
from partway.learning.token_tree import Target
from partway.objectives import MLEAug, target_weights

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class LabelSmoothing(MLEAug):
    """Each token is learned as `smoothing` parts of all tokens alike, and the rest of itself.

    Szegedy et al. 2016, Rethinking the Inception Architecture, section 7; as PyTorch's cross entropy has it.
    """

    label = "label smoothing"
    meaning = "label smoothing asks for a little of every other token, too"
    colours: ClassVar = {}

    smoothing: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < 1:
            raise ConfigError(f"smoothing is {self.smoothing}, expected a number from 0 to below 1; try 0.1")

    @property
    def term(self) -> Callable[[Tensor], Tensor]:
        """The mean over the vocabulary; `loss` gives both their shares."""
        odds = self.smoothing / (1 - self.smoothing)
        return lambda log_probs_N_V: odds * log_probs_N_V.mean(-1)

    def loss(self, log_probs_S: Tensor, targets: Sequence[Target]) -> Tensor:
        """Both parts."""
        return (1 - self.smoothing) * super().loss(log_probs_S, targets)


@dataclass(frozen=True)
class EntropyBonus(MLEAug):
    """The entropy of each token's distribution is rewarded (Pereyra et al. 2017, confidence penalty)."""

    label = "entropy bonus"
    meaning = "the entropy bonus rewards the model for staying undecided"
    colours: ClassVar = {}

    weight: float = 0.1

    @property
    def term(self) -> Callable[[Tensor], Tensor]:
        """A share of the entropy."""
        return lambda log_probs_N_V: -self.weight * (log_probs_N_V.exp() * log_probs_N_V).sum(-1)


@dataclass(frozen=True)
class GEM(MLEAug):
    """Each token is raised against q, the model's own distribution at temperature `beta`.

    Li et al. 2024, Preserving Diversity in Supervised Fine-Tuning (arXiv 2408.16673), the linear case: the
    gradient is that of log p(token) less that of the mean of log p under q, and q is taken as it is.
    """

    label = "GEM"
    meaning = "GEM takes probability from what the model prefers, not from all other tokens"
    colours: ClassVar = {}

    beta: float = 0.7

    def __post_init__(self) -> None:
        if not 0 < self.beta <= 1:
            raise ConfigError(f"beta is {self.beta}, expected a number above 0 and up to 1; try 0.7")

    @property
    def term(self) -> Callable[[Tensor], Tensor]:
        """The mean under q, which has no gradient of its own."""

        def less_own_mean(log_probs_N_V: Tensor) -> Tensor:
            q_N_V = (log_probs_N_V.detach() / self.beta).softmax(-1)
            return -(q_N_V * log_probs_N_V).sum(-1)

        return less_own_mean


@dataclass(frozen=True)
class DCO(MLEAug):
    """-log of the chance that one of `tries` samples is the solution, for each kept one.

    Chen et al. 2025, Rethinking Fine-Tuning when Scaling Test-Time Compute (arXiv 2502.07154): a solution
    that the model writes in one of N tries anyway is learned no further.

    >>> import torch
    >>> round(DCO(tries=2)(torch.tensor([0.5]).log(), [Target((1,))]).item(), 4)  # -log(1 - 0.5 ** 2)
    0.2877
    """

    label = "DCO"
    meaning = "DCO asks for each solution once in N samples, no more"
    colours: ClassVar = {}
    couples = True  # not linear in the log-probs

    tries: int = 16

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise ConfigError(f"tries is {self.tries}, expected at least 1; try 16")

    def loss(self, log_probs_S: Tensor, targets: Sequence[Target]) -> Tensor:
        """In logarithms; a solution too unlikely for a float is learned as by MLE."""
        import torch

        is_rare = log_probs_S < math.log(1e-6 / self.tries)  # 1 - (1 - p)^N is N p to the last digit there
        # Where the other way is taken, a number without trouble stands in: its gradient is multiplied by 0.
        usual_S = torch.where(is_rare, -1.0, log_probs_S).clamp(max=-1e-7)
        all_fail_S = self.tries * torch.log1p(-usual_S.exp())
        one_right_S = torch.where(
            is_rare, log_probs_S + math.log(self.tries), torch.log(-torch.expm1(all_fail_S))
        )
        return -(target_weights(log_probs_S, targets) * one_right_S).sum()
