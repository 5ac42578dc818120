"""The objectives of Table 1: values, gradients, limits and numerical stability."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from partway.errors import ConfigError
from partway.learning.token_tree import Target, TargetKind
from partway.objectives import TABLE_1, BetaMML, MLEAug, objective

LOG_PROBS = torch.tensor([-3.0, -1.5, -7.0, -2.25], dtype=torch.float64)


def gradient(loss: object, log_probs: Tensor) -> Tensor:
    leaf = log_probs.clone().requires_grad_()
    (result,) = torch.autograd.grad(loss(leaf), leaf)  # type: ignore[operator]
    return result


def targets(*lengths: int) -> list[Target]:
    """Targets of these many tokens."""
    return [Target((7,) * length) for length in lengths]


FOUR = targets(5, 5, 5, 5)
mle, mml, mle_aug = objective("mle"), objective("mml"), objective("mle_aug")


def beta_mml(log_probs_S: Tensor, targets: Sequence[Target], beta: float = 0.25) -> Tensor:
    return BetaMML(beta)(log_probs_S, targets)


@pytest.mark.parametrize("name", TABLE_1)
def test_every_objective_is_mle_when_the_reference_is_alone(name: str) -> None:
    alone = LOG_PROBS[:1]
    for normalization in ("sum", "solutions"):
        loss = objective(name, normalization=normalization)(alone, FOUR[:1])
        torch.testing.assert_close(loss, mle(alone, FOUR[:1]))


def test_mle_looks_at_the_reference_only() -> None:
    torch.testing.assert_close(
        gradient(lambda x: mle(x, FOUR), LOG_PROBS), torch.tensor([-1.0, 0, 0, 0], dtype=torch.float64)
    )


def test_losses_are_those_of_table_1() -> None:
    probabilities = LOG_PROBS.exp()
    assert mle(LOG_PROBS, FOUR).item() == pytest.approx(3.0)
    assert mle_aug(LOG_PROBS, FOUR).item() == pytest.approx(13.75)
    assert mml(LOG_PROBS, FOUR).item() == pytest.approx(-math.log(probabilities.sum()))
    assert beta_mml(LOG_PROBS, FOUR, 0.5).item() == pytest.approx(-2 * math.log((probabilities**0.5).sum()))


@pytest.mark.parametrize("beta", [0.1, 0.25, 0.5, 0.9, 1.0])
def test_gradients_are_those_of_table_1(beta: float) -> None:
    powers = LOG_PROBS.exp() ** beta
    torch.testing.assert_close(
        gradient(lambda x: beta_mml(x, FOUR, beta), LOG_PROBS), -powers / powers.sum(), rtol=1e-12, atol=0
    )
    torch.testing.assert_close(gradient(lambda x: mle_aug(x, FOUR), LOG_PROBS), -torch.ones_like(LOG_PROBS))
    shares = LOG_PROBS.exp() / LOG_PROBS.exp().sum()
    torch.testing.assert_close(gradient(lambda x: mml(x, FOUR), LOG_PROBS), -shares, rtol=1e-12, atol=0)


@pytest.mark.parametrize("normalization", ["sum", "length", "solutions"])
@pytest.mark.parametrize("name", TABLE_1)
def test_gradients_agree_with_finite_differences(name: str, normalization: str) -> None:
    loss = objective(name, normalization=normalization)
    counts = targets(4, 2, 9, 3)
    assert torch.autograd.gradcheck(lambda x: loss(x, counts), LOG_PROBS.clone().requires_grad_())


def test_beta_mml_at_one_is_mml() -> None:
    torch.testing.assert_close(beta_mml(LOG_PROBS, FOUR, 1.0), mml(LOG_PROBS, FOUR))


def test_beta_mml_times_the_number_of_solutions_tends_to_the_gradient_of_mle_aug() -> None:
    errors = [
        (len(LOG_PROBS) * gradient(lambda x, beta=beta: beta_mml(x, FOUR, beta), LOG_PROBS) + 1)
        .abs()
        .max()
        .item()
        for beta in (0.1, 0.01, 0.001, 0.0001)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-3


@pytest.mark.parametrize("name", TABLE_1)
def test_probabilities_too_small_for_a_float_have_finite_losses_and_gradients(name: str) -> None:
    log_probs = torch.tensor([-5000.0, -5001.0, -9000.0])
    loss = objective(name)
    assert torch.isfinite(loss(log_probs, FOUR[:3]))
    assert torch.isfinite(gradient(lambda x: loss(x, FOUR[:3]), log_probs)).all()


def test_weights_of_tiny_probabilities_are_as_exact_as_those_of_large_ones() -> None:
    near = gradient(lambda x: mml(x, FOUR[:2]), torch.tensor([-1.0, -2.0]))
    far = gradient(lambda x: mml(x, FOUR[:2]), torch.tensor([-5001.0, -5002.0]))
    torch.testing.assert_close(near, far)


def test_normalization_by_length_divides_each_log_prob_by_the_length_of_its_target() -> None:
    counts = torch.tensor([1.0, 2.0, 4.0, 5.0], dtype=torch.float64)
    for name in TABLE_1:
        torch.testing.assert_close(
            objective(name, normalization="length")(LOG_PROBS, targets(1, 2, 4, 5)),
            objective(name)(LOG_PROBS / counts, FOUR),
        )


def test_normalization_by_solutions_puts_a_mean_where_the_sum_over_solutions_was() -> None:
    mean, powers = LOG_PROBS.exp().mean(), (LOG_PROBS.exp() ** 0.5).mean()

    def loss(name: str, **parameters: float) -> Tensor:
        return objective(name, parameters, "solutions")(LOG_PROBS, FOUR)

    assert loss("mle_aug") == pytest.approx(-LOG_PROBS.mean())
    assert loss("mml") == pytest.approx(-mean.log())
    assert loss("beta_mml", beta=0.5) == pytest.approx(-2 * powers.log())
    assert loss("mle") == pytest.approx(3.0)


def test_only_mml_and_beta_mml_couple_their_targets() -> None:
    assert [name for name in TABLE_1 if objective(name).couples] == ["mml", "beta_mml"]


def test_weights_count_in_every_objective() -> None:
    weighted = [replace(target, weight=weight) for target, weight in zip(FOUR, (2, 0.5, 1, 3), strict=True)]
    weights = torch.tensor([2, 0.5, 1, 3], dtype=torch.float64)
    powers = LOG_PROBS.exp() ** 0.25
    assert mle(LOG_PROBS, weighted).item() == pytest.approx(6.0)
    assert mle_aug(LOG_PROBS, weighted) == pytest.approx(-(weights * LOG_PROBS).sum())
    assert mml(LOG_PROBS, weighted) == pytest.approx(-(weights * LOG_PROBS.exp()).sum().log())
    assert beta_mml(LOG_PROBS, weighted) == pytest.approx(-4 * (weights * powers).sum().log())


@dataclass(frozen=True)
class Partially(MLEAug):
    """MLE-Aug in which a beginning of a solution counts by a share."""

    label = "MLE-Aug, PCS less"

    share: float = 0.5

    def loss(self, log_probs_S: Tensor, targets: Sequence[Target]) -> Tensor:
        shares = [self.share if target.kind == "partially_correct" else 1.0 for target in targets]
        return -(log_probs_S.new_tensor(shares) * log_probs_S).sum()


@pytest.mark.parametrize(("parameters", "share"), [({}, 0.5), ({"share": 0.25}, 0.25)])
def test_an_objective_of_ones_own_is_named_by_its_import_path(
    parameters: dict[str, float], share: float
) -> None:
    loss = objective(f"{__name__}:Partially", parameters, "solutions")
    kinds: list[TargetKind] = ["reference", "partially_correct", "fully_correct", "partially_correct"]
    kept = [replace(target, kind=kind) for target, kind in zip(FOUR, kinds, strict=True)]
    assert loss(LOG_PROBS, kept).item() == pytest.approx((10.0 + share * 3.75) / 4)
    assert loss.label == "MLE-Aug, PCS less"
    assert not loss.couples


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no_such_package.mine:loss", "but there is no module no_such_package; install it, or put its"),
        (f"{__name__}:Partial", f"but {__name__} has no 'Partial'; did you mean 'Partially'?"),
        (f"{__name__}:LOG_PROBS.dtype", "a dtype, expected a subclass of Objective"),
        ("mine.py:loss at all", "expected package.module:name"),
        (":", "expected package.module:name"),
    ],
)
def test_an_import_path_that_leads_nowhere_is_explained(path: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        objective(path)
    assert str(caught.value).startswith(f"objective is {path!r}, ")
    assert message in str(caught.value)


def test_a_module_that_fails_when_imported_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_objective.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"importing broken_objective fails \(ZeroDivisionError: division"):
        objective("broken_objective:loss")


def test_labels_and_colours_are_read_without_torch() -> None:
    code = "import sys, runreports.theme; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("mmle",),
            "'mmle' is not one of the objectives: mle, mml, mle_aug, beta_mml, grpo, rloo, maxrl, pkpo, "
            "grpo_steps, grpo_tree, label_smoothing, entropy_bonus, gem, dco; "
            "did you mean 'mml'?",
        ),
        (("beta_mml", {"beta": 0.0}), "beta is 0.0, expected a number above 0 and up to 1; try 0.25"),
        (("beta_mml", {"beta": math.nan}), "beta is nan, expected a number above 0 and up to 1; try 0.25"),
        (("beta_mml", {"bet": 1}), "objective_args has 'bet', but beta_mml takes beta; did you mean 'beta'?"),
        (("mle", {"k": 1}), "objective_args has 'k', but mle takes no parameters"),
    ],
)
def test_wrong_settings_are_named(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        objective(*arguments)
    assert str(caught.value) == message
