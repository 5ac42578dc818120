"""Losses against overconfidence: exact on trees, and what their papers say on plain rows."""

from __future__ import annotations

import math
import random

import pytest
import torch
from scoring_cases import TOLERANCE, branching, gradients, largest_error, learn, tiny
from torch import Tensor
from transformers import PreTrainedModel

from partway.confidence.losses import DCO, GEM, EntropyBonus, LabelSmoothing
from partway.errors import ConfigError
from partway.learning.layouts import Flat, Layout
from partway.learning.scoring import Scorer
from partway.learning.token_tree import Target, Targets
from partway.objectives import MLEAug, Objective, objective


def rows_of(model: PreTrainedModel, problem: Targets, target: Target) -> tuple[Tensor, Tensor]:
    """For every token of a target its distribution, one sequence at a time, and the token."""
    tokens = torch.tensor(target.tokens)
    logits = model(input_ids=torch.tensor([problem.prompt + target.tokens])).logits[0]
    return logits[len(problem.prompt) - 1 : -1].double().log_softmax(-1), tokens


def smoothed(log_probs: Tensor, tokens: Tensor) -> Tensor:
    """PyTorch's own."""
    return torch.nn.functional.cross_entropy(log_probs, tokens, label_smoothing=0.2, reduction="sum")


def with_entropy(log_probs: Tensor, tokens: Tensor) -> Tensor:
    entropy = torch.distributions.Categorical(logits=log_probs).entropy()
    return -(log_probs.gather(1, tokens[:, None]).sum() + 0.3 * entropy.sum())


def against_own(log_probs: Tensor, tokens: Tensor) -> Tensor:
    """Equation by equation: the sum over tokens v of q(v) (log p(token) - log p(v))."""
    q = (log_probs / 0.7).softmax(-1).detach()
    return -(q * (log_probs.gather(1, tokens[:, None]) - log_probs)).sum()


def once_in_eight(log_probs: Tensor, tokens: Tensor) -> Tensor:
    p = log_probs.gather(1, tokens[:, None]).sum().exp()
    return -torch.log(1 - (1 - p) ** 8)


LOSSES = [
    (LabelSmoothing(0.2), smoothed),
    (EntropyBonus(0.3), with_entropy),
    (GEM(0.7), against_own),
    (DCO(8), once_in_eight),
]


@pytest.mark.parametrize("layout", [None, Flat()], ids=["tree", "flat"])
@pytest.mark.parametrize(("loss", "plain"), LOSSES, ids=lambda given: getattr(given, "label", ""))
def test_on_any_layout_losses_and_gradients_are_those_of_the_papers_formula_on_plain_rows(
    loss, plain, layout
):
    model = tiny("llama")
    with torch.no_grad():  # short targets of a calm model, so that DCO sees probabilities of all sizes
        for parameter in model.parameters():
            parameter.mul_(0.5)
    rng = random.Random(3)
    batch = [branching(rng, 9, 4, 5), branching(rng, 5, 1, 2), branching(rng, 3, 3, 1)]
    found, found_gradients = learn(scorer := Scorer(model, 0, layout=layout), model, scorer.plan(batch), loss)
    model.zero_grad()
    expected = torch.stack(
        [sum(plain(*rows_of(model, problem, target)) for target in problem.targets) for problem in batch]
    )
    expected.mean().backward()
    torch.testing.assert_close(found, expected.detach().float(), rtol=TOLERANCE, atol=0)
    assert largest_error(found_gradients, gradients(model)) < TOLERANCE


@pytest.mark.parametrize("layout", [None, Flat()], ids=["tree", "flat"])
def test_terms_are_the_same_when_a_problem_is_learned_in_parts(layout: Layout | None):
    model, batch = tiny("llama"), [branching(random.Random(5), 20, 6, 18)]
    for loss in (GEM(), DCO(4)):
        whole = Scorer(model, 0, layout=layout, tokens_per_pass=512)
        parts = Scorer(model, 0, layout=layout, tokens_per_pass=60)
        assert len(parts.plan(batch).bundles) > len(whole.plan(batch).bundles)
        losses, expected = learn(whole, model, whole.plan(batch), loss)
        in_parts, found = learn(parts, model, parts.plan(batch), loss)
        torch.testing.assert_close(in_parts, losses, rtol=TOLERANCE, atol=0)
        assert largest_error(found, expected) < TOLERANCE


@pytest.mark.parametrize(
    "loss", [LabelSmoothing(0.0), EntropyBonus(0.0), DCO(1)], ids=lambda loss: loss.label
)
def test_without_their_change_they_are_mle_aug(loss: Objective):
    model, batch = tiny("gpt2"), [branching(random.Random(4), 6, 3, 8)]
    scorer = Scorer(model, 0)
    losses, expected = learn(scorer, model, scorer.plan(batch), MLEAug())
    same, found = learn(scorer, model, scorer.plan(batch), loss)
    torch.testing.assert_close(same, losses, rtol=TOLERANCE, atol=0)
    assert largest_error(found, expected) < TOLERANCE


def test_dco_learns_a_sure_solution_no_further_and_a_hopeless_one_as_mle():
    log_probs = [math.log(0.5), math.log(1e-4), -300.0]
    given = torch.tensor(log_probs, requires_grad=True)
    DCO(tries=16)(given, [Target((1,))] * 3).backward()
    assert given.grad is not None
    sure, rare, hopeless = given.grad.tolist()
    assert sure == pytest.approx(-16 * 0.5**16 / (1 - 0.5**16), rel=1e-3)  # by the formula
    assert sure > -3e-4
    assert rare == pytest.approx(-1, abs=1e-3)
    assert hopeless == -1


@pytest.mark.parametrize(
    ("name", "given"),
    [("label_smoothing", {"smoothing": 1.0}), ("gem", {"beta": 0.0}), ("dco", {"tries": 0})],
)
def test_a_parameter_without_meaning_is_one_line(name: str, given: dict[str, float]):
    with pytest.raises(ConfigError, match="try"):
        objective(name, given)
