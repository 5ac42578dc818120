"""What holds for the objectives on any log-probs."""

from __future__ import annotations

import math

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from partway.learning.token_tree import Target
from partway.objectives import MML, TABLE_1, BetaMML, MLEAug, objective

log_probs = st.lists(st.floats(-5000, 0), min_size=1, max_size=8).map(
    lambda values: torch.tensor(values, dtype=torch.float64)
)
betas = st.floats(0.01, 1)


def targets(values: Tensor) -> list[Target]:
    return [Target((1,) * 7)] * len(values)


@given(log_probs, betas)
def test_beta_mml_lies_between_the_best_solution_and_the_bound_by_their_number(
    values: Tensor, beta: float
) -> None:
    best = -values.max()
    loss = BetaMML(beta)(values, targets(values))
    assert loss <= best + 1e-9
    assert loss >= best - math.log(len(values)) / beta - 1e-9 * (1 + best.abs())


@given(log_probs, betas, st.randoms())
def test_the_order_of_solutions_does_not_matter_but_to_mle(
    values: Tensor, beta: float, random: object
) -> None:
    order = list(range(len(values)))
    random.shuffle(order)  # type: ignore[attr-defined]
    for loss in (MLEAug(), MML(), BetaMML(beta)):
        torch.testing.assert_close(loss(values[order], targets(values)), loss(values, targets(values)))


@given(log_probs, betas)
def test_weights_of_the_coupled_objectives_are_a_distribution(values: Tensor, beta: float) -> None:
    leaf = values.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(BetaMML(beta)(leaf, targets(leaf)), leaf)
    torch.testing.assert_close(gradient.sum(), torch.tensor(-1.0, dtype=torch.float64))
    assert (gradient <= 0).all()


@given(log_probs, st.sampled_from(sorted(TABLE_1)), st.sampled_from(["sum", "length", "solutions"]))
def test_a_more_probable_solution_never_raises_the_loss(
    values: Tensor, name: str, normalization: str
) -> None:
    loss = objective(name, normalization=normalization)
    assert loss(values + 1, targets(values)) <= loss(values, targets(values))
