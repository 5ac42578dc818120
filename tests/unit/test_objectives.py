"""The objectives of Table 1: values, gradients, limits and numerical stability."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from partway.errors import ConfigError
from partway.objectives import OBJECTIVES, Objective, beta_mml, mle, mle_aug, mml, objective

LOG_PROBS = torch.tensor([-3.0, -1.5, -7.0, -2.25], dtype=torch.float64)


def gradient(loss: object, log_probs: Tensor) -> Tensor:
    leaf = log_probs.clone().requires_grad_()
    (result,) = torch.autograd.grad(loss(leaf), leaf)  # type: ignore[operator]
    return result


def lengths(log_probs: Tensor) -> Tensor:
    return torch.full_like(log_probs, 5.0)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_is_mle_when_the_reference_is_alone(name: str) -> None:
    alone = LOG_PROBS[:1]
    for normalization in ("sum", "solutions"):
        loss = objective(name, normalization=normalization)(alone, lengths(alone))
        torch.testing.assert_close(loss, mle(alone))


def test_mle_looks_at_the_reference_only() -> None:
    torch.testing.assert_close(gradient(mle, LOG_PROBS), torch.tensor([-1.0, 0, 0, 0], dtype=torch.float64))


def test_losses_are_those_of_table_1() -> None:
    probabilities = LOG_PROBS.exp()
    assert mle(LOG_PROBS).item() == pytest.approx(3.0)
    assert mle_aug(LOG_PROBS).item() == pytest.approx(13.75)
    assert mml(LOG_PROBS).item() == pytest.approx(-math.log(probabilities.sum()))
    assert beta_mml(LOG_PROBS, 0.5).item() == pytest.approx(-2 * math.log((probabilities**0.5).sum()))


@pytest.mark.parametrize("beta", [0.1, 0.25, 0.5, 0.9, 1.0])
def test_gradients_are_those_of_table_1(beta: float) -> None:
    powers = LOG_PROBS.exp() ** beta
    torch.testing.assert_close(
        gradient(lambda x: beta_mml(x, beta), LOG_PROBS), -powers / powers.sum(), rtol=1e-12, atol=0
    )
    torch.testing.assert_close(gradient(mle_aug, LOG_PROBS), -torch.ones_like(LOG_PROBS))
    shares = LOG_PROBS.exp() / LOG_PROBS.exp().sum()
    torch.testing.assert_close(gradient(mml, LOG_PROBS), -shares, rtol=1e-12, atol=0)


@pytest.mark.parametrize("normalization", ["sum", "length", "solutions"])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradients_agree_with_finite_differences(name: str, normalization: str) -> None:
    loss = objective(name, 0.25, normalization)
    counts = torch.tensor([4.0, 2.0, 9.0, 3.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: loss(x, counts), LOG_PROBS.clone().requires_grad_())


def test_beta_mml_at_one_is_mml() -> None:
    torch.testing.assert_close(beta_mml(LOG_PROBS, 1.0), mml(LOG_PROBS))


def test_beta_mml_times_the_number_of_solutions_tends_to_the_gradient_of_mle_aug() -> None:
    errors = [
        (len(LOG_PROBS) * gradient(lambda x, beta=beta: beta_mml(x, beta), LOG_PROBS) + 1).abs().max().item()
        for beta in (0.1, 0.01, 0.001, 0.0001)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-3


@pytest.mark.parametrize("name", OBJECTIVES)
def test_probabilities_too_small_for_a_float_have_finite_losses_and_gradients(name: str) -> None:
    log_probs = torch.tensor([-5000.0, -5001.0, -9000.0])
    loss = objective(name)
    assert torch.isfinite(loss(log_probs, lengths(log_probs)))
    assert torch.isfinite(gradient(lambda x: loss(x, lengths(x)), log_probs)).all()


def test_weights_of_tiny_probabilities_are_as_exact_as_those_of_large_ones() -> None:
    near = gradient(mml, torch.tensor([-1.0, -2.0]))
    far = gradient(mml, torch.tensor([-5001.0, -5002.0]))
    torch.testing.assert_close(near, far)


def test_normalization_by_length_divides_each_log_prob_by_the_length_of_its_target() -> None:
    counts = torch.tensor([1.0, 2.0, 4.0, 5.0], dtype=torch.float64)
    for name, plain in OBJECTIVES.items():
        torch.testing.assert_close(
            objective(name, 0.25, "length")(LOG_PROBS, counts), plain(LOG_PROBS / counts)
        )


def test_normalization_by_solutions_puts_a_mean_where_the_sum_over_solutions_was() -> None:
    counts, mean = lengths(LOG_PROBS), LOG_PROBS.exp().mean()
    assert objective("mle_aug", 0.25, "solutions")(LOG_PROBS, counts) == pytest.approx(-LOG_PROBS.mean())
    assert objective("mml", 0.25, "solutions")(LOG_PROBS, counts) == pytest.approx(-mean.log())
    powers = (LOG_PROBS.exp() ** 0.5).mean()
    assert objective("beta_mml", 0.5, "solutions")(LOG_PROBS, counts) == pytest.approx(-2 * powers.log())
    assert objective("mle", 0.25, "solutions")(LOG_PROBS, counts) == pytest.approx(3.0)


def test_only_mml_and_beta_mml_couple_their_targets() -> None:
    assert [name for name in OBJECTIVES if objective(name).couples] == ["mml", "beta_mml"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mmle",), "objective is 'mmle', expected one of mle, mle_aug, mml, beta_mml"),
        (("beta_mml", 0.0), "mml_beta is 0.0, expected a number above 0 and up to 1; try 0.25"),
        (("beta_mml", float("nan")), "mml_beta is nan, expected a number above 0 and up to 1; try 0.25"),
        (("mml", 0.25, "tokens"), "loss_normalization is 'tokens', expected one of sum, length, solutions"),
    ],
)
def test_wrong_settings_are_named(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        objective(*arguments)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_an_objective_is_a_value() -> None:
    assert objective("mml") == Objective("mml", 0.25, "sum")
