"""Objectives: what is minimised over one problem's targets. One table holds all there is to say about each.

MLE, MLE-Aug, MML and beta-MML are the paper's Table 1; the others are policy gradients, which learn a step's
own samples by their rewards in place of the buffer. An objective of your own is a function like `mle_aug`,
or an `Objective` around one where it wants a label and a colour; settings name it by `package.module:name`.
`log_probs_S` runs over the targets of one problem, the reference first; the result is a scalar.
Importing this needs no torch, because reports read labels and colours here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from partway.advantages import grpo, maxrl, pkpo, rloo
from partway.errors import ConfigError, suggestion
from partway.importing import imported
from partway.models.targets import Target

if TYPE_CHECKING:
    from torch import Tensor

    Loss = Callable[[Tensor, Sequence[Target]], Tensor]

Advantages = Callable[[Sequence[float]], list[float]]

NORMALIZATIONS = ("sum", "length", "solutions")


def mle(log_probs_S: Tensor, targets: Sequence[Target]) -> Tensor:
    """-log P(y*|x): the first target is the reference, the others are ignored."""
    return -targets[0].weight * log_probs_S[0]


def mle_aug(log_probs_S: Tensor, targets: Sequence[Target]) -> Tensor:
    """-sum over B of w log P(y|x): every target counts by its weight, which is 1 in the paper.

    With rewards as weights, of any sign, over a step's own samples, this is a policy gradient.
    """
    return -(target_weights(log_probs_S, targets) * log_probs_S).sum()


def mml(log_probs_S: Tensor, targets: Sequence[Target]) -> Tensor:
    """-log of the sum over B of P(y|x): a target's weight in the gradient is its share of that sum."""
    return beta_mml(log_probs_S, targets, beta=1.0)


def beta_mml(log_probs_S: Tensor, targets: Sequence[Target], beta: float = 0.25) -> Tensor:
    """-(1/beta) log of the sum over B of w P(y|x)^beta: MML at beta = 1, MLE-Aug's balance as beta -> 0."""
    # A policy gradient's weights may be negative; its objective is `mle_aug`.
    assert all(target.weight > 0 for target in targets), (
        "there is no logarithm of a weight that is not positive"
    )
    best = log_probs_S.max().detach()  # apart, or its rounding would be an error of every weight
    # log of w P^beta, less the constant beta * best that every target has.
    exponents_S = beta * (log_probs_S - best) + target_weights(log_probs_S, targets).log()
    return -best - exponents_S.logsumexp(dim=0) / beta


def target_weights(log_probs_S: Tensor, targets: Sequence[Target]) -> Tensor:
    """The targets' weights, as numbers like their log-probs."""
    return log_probs_S.new_tensor([target.weight for target in targets])


def divided(loss: Tensor, solutions: int) -> Tensor:
    """The mean in place of a sum of log-probs."""
    return loss / solutions


def shifted(loss: Tensor, solutions: int, beta: float = 1.0) -> Tensor:
    """The mean in place of a sum of probabilities, which stands inside a logarithm."""
    return loss + (1 / beta) * math.log(solutions)


def unchanged(loss: Tensor, solutions: int) -> Tensor:
    """Nothing is summed over solutions."""
    return loss


@dataclass(frozen=True)
class Objective:
    """A loss of one problem's targets, and what trainer, scorer, settings and reports want to know of it.

    `couples` says whether the weight of one target in the gradient depends on the log-probs of the others; if
    not, the loss is linear in them. True is right for any loss and costs forward passes for buffers that do
    not fit one pass. `mean` is what `solutions` below makes of a loss. `colours` are names in
    `reports.theme`, by kind of self-sampling. With `advantages` the targets are a step's own samples,
    and their weights what it makes of their rewards.

    `normalization`: `length` divides each target's log-prob by its number of tokens; `solutions` turns the
    sum over B inside the objective into a mean (for MML the loss moves by a constant, the gradient stays).
    """

    name: str
    label: str
    loss: Loss
    couples: bool = True
    learns_reference_only: bool = False
    mean: Callable[[Tensor, int], Tensor] = divided
    colours: Mapping[str, str] = field(default_factory=dict)
    normalization: str = "sum"
    advantages: Advantages | None = None

    def __call__(self, log_probs_S: Tensor, targets: Sequence[Target]) -> Tensor:
        if self.normalization == "length":  # before the loss: MML's shares are then of mean log-probs
            log_probs_S = log_probs_S / log_probs_S.new_tensor([len(target) for target in targets])
        loss = self.loss(log_probs_S, targets)
        return self.mean(loss, len(targets)) if self.normalization == "solutions" else loss


def table_1(beta: float = 0.25) -> dict[str, Objective]:
    """The paper's objectives by name, in the order of its results."""
    entries = (
        Objective(
            "mle",
            "MLE",
            mle,
            couples=False,
            learns_reference_only=True,
            mean=unchanged,
            colours={"none": "blue"},
        ),
        # The sum stands inside the logarithm, so a mean over B moves the loss by log |B|.
        Objective("mml", "MML", mml, mean=shifted, colours={"fcs": "purple", "fcs+pcs": "vermilion"}),
        Objective(
            "mle_aug", "MLE-Aug", mle_aug, couples=False, colours={"fcs": "green", "fcs+pcs": "orange"}
        ),
        Objective(
            "beta_mml",
            "β-MML",
            partial(beta_mml, beta=beta),
            mean=partial(shifted, beta=beta),
            colours={"fcs": "sky", "fcs+pcs": "dark"},
        ),
    )
    return {entry.name: entry for entry in entries}


def policy_gradients(k: int = 4) -> dict[str, Objective]:
    """Objectives over a step's own samples; `k` is the one of pass@k in PKPO."""
    entries: dict[str, tuple[str, Advantages]] = {
        "grpo": ("GRPO", grpo),
        "rloo": ("RLOO", rloo),
        "maxrl": ("MaxRL", maxrl),
        "pkpo": ("PKPO", partial(pkpo, k=k)),
    }
    # The loss is MLE-Aug with advantages as weights: its gradient is the policy gradient.
    return {
        name: Objective(name, label, mle_aug, couples=False, advantages=advantages)
        for name, (label, advantages) in entries.items()
    }


OBJECTIVES = table_1() | policy_gradients()


def objective(name: str, beta: float = 0.25, normalization: str = "sum", k: int = 4) -> Objective:
    """The objective that a setting names: one of the table, or `package.module:name`.

    >>> objective("mml").couples
    True
    >>> objective("mlm")
    Traceback (most recent call last):
    partway.errors.ConfigError: objective is 'mlm', expected one of mle, mml, mle_aug, beta_mml, grpo, \
rloo, maxrl, pkpo, or package.module:name; did you mean 'mml'?
    """
    if not 0 < beta <= 1:
        raise ConfigError(f"mml_beta is {beta}, expected a number above 0 and up to 1; try 0.25")
    if normalization not in NORMALIZATIONS:
        raise ConfigError(
            f"loss_normalization is {normalization!r}, expected one of {', '.join(NORMALIZATIONS)}"
        )
    if ":" in name:  # where somebody's own is, not what it is called
        return replace(_of_a_user(name), normalization=normalization)
    if name not in OBJECTIVES:
        raise ConfigError(
            f"objective is {name!r}, expected one of {', '.join(OBJECTIVES)}, or package.module:name"
            + suggestion(name, OBJECTIVES)
        )
    table = table_1(beta) | policy_gradients(k)
    return replace(table[name], normalization=normalization)


def _of_a_user(path: str) -> Objective:
    found = imported(path, "objective")
    if isinstance(found, Objective):
        return replace(found, name=path)
    if not callable(found):
        kind = type(found).__name__
        raise ConfigError(f"objective is {path!r}, a {kind}, expected a function or an Objective")
    return Objective(path, label_of(path), found)


def label_of(name: str) -> str:
    """What tables and figures call an objective, also one whose code is not here any more.

    >>> label_of("beta_mml"), label_of("mypackage.mine:half_partial")
    ('β-MML', 'half_partial')
    """
    return OBJECTIVES[name].label if name in OBJECTIVES else name.rpartition(":")[2]
