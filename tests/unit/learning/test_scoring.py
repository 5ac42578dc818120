"""Scoring on trees: the losses and gradients of scoring each target alone, in passes of bounded size."""

from __future__ import annotations

import operator
import random
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import pytest
import torch
from scoring_cases import (
    TOLERANCE,
    EachAlone,
    alone,
    branching,
    gradients,
    largest_error,
    learn,
    log_probs,
    reference_loss,
    tiny,
)
from torch import Tensor, nn
from transformers import PreTrainedModel

from partway.learning.layouts import Flat, Layout, Tree
from partway.learning.scoring import Scorer
from partway.learning.token_tree import Target, Targets
from partway.objectives import TABLE_1, MLEAug, Objective, objective

NAMES = operator.attrgetter("name")
FAMILIES = ["gpt_neo", "gpt2", "llama", "qwen3", "gpt_neox", "mistral", "gemma2", "bloom"]


def problems() -> list[Targets]:
    """Buffers of several sizes, one of them beyond the local windows of the models that have them."""
    rng = random.Random(3)
    return [branching(rng, *sizes) for sizes in ((20, 5, 18), (11, 1, 9), (50, 6, 30), (4, 3, 2))]


def assert_same(
    scorer: Scorer,
    model: PreTrainedModel,
    batch: list[Targets],
    loss: Objective,
    each: EachAlone | None = None,
) -> None:
    expected_losses, expected = each.loss(loss) if each else reference_loss(model, batch, loss)
    losses, found = learn(scorer, model, scorer.plan(batch), loss)
    torch.testing.assert_close(losses, expected_losses, rtol=TOLERANCE, atol=0)
    assert largest_error(found, expected) < TOLERANCE


@pytest.mark.parametrize("family", FAMILIES)
def test_losses_and_gradients_are_those_of_each_target_alone(family: str) -> None:
    model = tiny(family)
    scorer = Scorer(model, 0, tokens_per_pass=512)
    each = EachAlone(model, problems())
    for name in TABLE_1:
        assert_same(scorer, model, problems(), objective(name), each)


@pytest.mark.parametrize("own", [9, 0], ids=["prompts that begin alike", "equal prompts"])
@pytest.mark.parametrize("family", ["gpt_neo", "llama", "gemma2"])
def test_a_beginning_that_prompts_share_is_learned_as_in_each_alone(family: str, own: int) -> None:
    rng = random.Random(own)
    model = tiny(family)
    scorer = Scorer(model, 0, tokens_per_pass=128)
    for sizes in ([(1, 9), (8, 30), (3, 20)], [(9, 25), (2, 30), (1, 4), (4, 12)]):  # the longest are split
        beginning = tuple(range(1, 25))
        parts = [branching(rng, own + 1, count, length) for count, length in sizes]
        batch = [Targets(beginning + part.prompt[:own], part.targets) for part in parts]
        each = EachAlone(model, batch)
        for name in ("mle_aug", "mml"):  # the second weighs the targets of several passes first
            assert_same(scorer, model, batch, objective(name), each)


@pytest.mark.parametrize("family", ["gpt_neo", "llama", "bloom"])
def test_the_last_fallback_is_as_right_as_trees(family: str) -> None:
    model = tiny(family)
    scorer = Scorer(model, 0, layout=Flat(), tokens_per_pass=512)
    each = EachAlone(model, problems())
    for name in ("mle_aug", "beta_mml"):
        assert_same(scorer, model, problems(), objective(name), each)


@pytest.mark.parametrize(("attention", "layout"), [("sdpa", "tree"), ("eager", "tree_rows")])
def test_both_kinds_of_attention_are_right(attention: str, layout: str) -> None:
    model = tiny("gpt2", attention)
    scorer = Scorer(model, 0, tokens_per_pass=512)
    assert scorer.layout.name == layout
    assert_same(scorer, model, problems(), objective("mml"))


@cache
def scorer_in_parts(layout: Layout) -> tuple[PreTrainedModel, Scorer]:
    """The layout is checked once, not for every objective."""
    model = tiny("llama")
    return model, Scorer(model, 0, layout=layout, tokens_per_pass=120)


@cache
def each_alone() -> EachAlone:
    return EachAlone(tiny("llama"), problems()[:3])


@pytest.mark.slow
@pytest.mark.parametrize("normalization", ["sum", "length", "solutions"])
@pytest.mark.parametrize("name", TABLE_1)
@pytest.mark.parametrize("layout", [Tree(256), Flat()], ids=NAMES)
def test_a_problem_larger_than_a_pass_is_learned_in_parts(
    layout: Layout, name: str, normalization: str
) -> None:
    model, scorer = scorer_in_parts(layout)
    batch = problems()[:3]
    assert 2 in scorer.plan(batch).split
    parameters = {"beta": 0.5} if name == "beta_mml" else {}
    assert_same(scorer, model, batch, objective(name, parameters, normalization), each_alone())


class Coupled(MLEAug):
    """A policy gradient, rewards of any sign over the samples of a step, of which the scorer knows less."""

    couples = True


def rewarded(problem: Targets) -> Targets:
    """The targets as samples whose rewards add up to zero."""
    middle = (len(problem.targets) - 1) / 2
    samples = (Target(tokens, "sample", k - middle) for k, tokens in enumerate(problem.sequences))
    return Targets(problem.prompt, tuple(samples))


@pytest.mark.parametrize("couples", [False, True])
@pytest.mark.parametrize("tokens_per_pass", [512, 90])
@pytest.mark.parametrize("family", ["llama", "gpt_neo"])
def test_signed_weights_have_the_gradient_of_flat_rows(
    family: str, tokens_per_pass: int, couples: bool
) -> None:
    model = tiny(family).double()
    batch = [rewarded(problem) for problem in problems()]
    scorer = Scorer(model, 0, tokens_per_pass=tokens_per_pass)
    assert scorer.layout.name in ("tree", "tree_rows")
    plan = scorer.plan(batch)
    assert bool(plan.split) == (tokens_per_pass == 90)
    loss = Coupled() if couples else MLEAug()
    expected_losses, expected = reference_loss(model, batch, loss)
    losses, found = learn(scorer, model, plan, loss)
    torch.testing.assert_close(losses.float(), expected_losses, rtol=1e-6, atol=1e-6)
    assert largest_error(found, expected) < 1e-6


def test_only_objectives_that_couple_targets_need_passes_to_weigh_them() -> None:
    model = tiny("llama")
    scorer = Scorer(model, 0, tokens_per_pass=90)
    plan = scorer.plan(problems())
    assert 0 < plan.weighing <= plan.learning
    calls = []
    model.register_forward_pre_hook(lambda *_: calls.append(torch.is_grad_enabled()))
    learn(scorer, model, plan, objective("mle_aug"))
    assert calls == [True] * plan.learning
    calls.clear()
    learn(scorer, model, plan, objective("mml"))
    assert calls == [False] * plan.weighing + [True] * plan.learning


def test_empty_passes_add_nothing_but_take_part() -> None:
    model = tiny("llama")
    scorer = Scorer(model, 0, tokens_per_pass=90)
    plan = scorer.plan(problems())
    losses, expected = learn(scorer, model, plan, objective("mml"))
    calls = []
    model.register_forward_pre_hook(lambda *_: calls.append(1))
    more = plan.padded(plan.weighing + 2, plan.learning + 3)
    losses_of_more, found = learn(scorer, model, more, objective("mml"))
    assert len(calls) == more.weighing + more.learning
    assert torch.equal(losses, losses_of_more)
    assert largest_error(found, expected) == 0


def test_a_process_without_problems_has_gradients_of_zero_for_every_parameter() -> None:
    model = tiny("gpt_neo")
    scorer = Scorer(model, 0, tokens_per_pass=64)
    losses, found = learn(scorer, model, scorer.plan([]).padded(0, 1), objective("mle_aug"), batch_size=4)
    assert losses.shape == (0,)
    assert found.keys() == {name for name, _ in model.named_parameters()}
    assert all(not gradient.any() for gradient in found.values())


def test_gradients_are_of_the_mean_over_the_whole_batch() -> None:
    model, batch, loss = tiny("llama"), problems(), objective("mle_aug")
    scorer = Scorer(model, 0, tokens_per_pass=512)
    _, whole = learn(scorer, model, scorer.plan(batch), loss)
    _, first = learn(scorer, model, scorer.plan(batch[:1]), loss, batch_size=4)
    _, rest = learn(scorer, model, scorer.plan(batch[1:]), loss, batch_size=4)
    assert largest_error({name: first[name] + rest[name] for name in whole}, whole) < TOLERANCE


def test_the_question_is_learned_on_request() -> None:
    model, batch = tiny("llama"), problems()
    scorer = Scorer(model, 0, tokens_per_pass=512, learn_question=True)
    for problem, found in zip(batch, log_probs(scorer, model, batch), strict=True):
        expected = [alone(model, problem.prompt[:1], problem.prompt[1:] + t) for t in problem.sequences]
        torch.testing.assert_close(found, torch.stack(expected).detach())


def test_log_probs_come_in_the_order_of_the_targets_and_without_gradients() -> None:
    model, batch = tiny("qwen3"), problems()
    for problem, found in zip(batch, log_probs(Scorer(model, 0), model, batch), strict=True):
        expected = [alone(model, problem.prompt, target) for target in problem.sequences]
        torch.testing.assert_close(found, torch.stack(expected).detach())
        assert not found.requires_grad


def test_equal_targets_and_targets_that_begin_others_are_scored_like_any_other() -> None:
    model = tiny("llama")
    batch = [Targets.of((5, 6, 7), ((1, 2, 3), (1, 2), (1, 2, 3), (4,)))]
    assert_same(Scorer(model, 0, tokens_per_pass=64), model, batch, objective("mml"))


def test_training_mode_with_checkpointed_activations_changes_nothing() -> None:
    model, batch = tiny("llama"), problems()
    _, expected = reference_loss(model, batch, objective("mml"))
    scorer = Scorer(model, 0, tokens_per_pass=90)
    model.train()
    model.gradient_checkpointing_enable()
    _, found = learn(scorer, model, scorer.plan(batch), objective("mml"))
    assert largest_error(found, expected) < TOLERANCE


def test_only_positions_with_a_token_to_score_reach_the_output_head() -> None:
    model, batch = tiny("llama"), problems()
    scorer = Scorer(model, 0)
    rows = []
    model.lm_head.register_forward_hook(lambda _, __, logits: rows.append(logits.shape[:-1].numel()))
    learn(scorer, model, scorer.plan(batch), objective("mle_aug"))
    beginnings = {p.prompt + t[:i] for p in batch for t in p.sequences for i in range(len(t))}
    assert sum(rows) == len(beginnings)


def test_the_output_head_is_as_it_was_afterwards() -> None:
    model = tiny("llama")
    before = model(input_ids=torch.tensor([[1, 2, 3]])).logits
    log_probs(Scorer(model, 0), model, problems())
    assert torch.equal(model(input_ids=torch.tensor([[1, 2, 3]])).logits, before)


def saved_bytes(scorer: Scorer, model: nn.Module, batch: list[Targets]) -> int:
    """The most that any pass keeps for its backward pass."""
    most = current = 0

    def pack(tensor: Tensor) -> Tensor:
        nonlocal current
        current += tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        for one in scorer.losses(model, scorer.plan(batch), objective("beta_mml")):
            one.loss.backward()
            most, current = max(most, current), 0
    return most


@pytest.mark.slow
@pytest.mark.parametrize("layout", [Tree(256), Flat()], ids=NAMES)
def test_memory_does_not_grow_with_the_buffer(layout: Layout) -> None:
    model, rng = tiny("llama"), random.Random(0)
    scorer = Scorer(model, 0, layout=layout, tokens_per_pass=256)
    small, large = (branching(rng, 30, solutions, 25) for solutions in (20, 200))
    assert max(bundle.tokens_computed for bundle in scorer.plan([large]).bundles) <= 256
    assert saved_bytes(scorer, model, [large]) < 1.2 * saved_bytes(scorer, model, [small])


def test_half_precision_is_scored_in_single_precision_after_the_head() -> None:
    model, batch = tiny("llama").to(torch.bfloat16), problems()
    scorer = Scorer(model, 0, tokens_per_pass=512)
    assert scorer.layout.name == "tree"
    losses, _ = learn(scorer, model, scorer.plan(batch), objective("mle_aug"))
    expected, _ = reference_loss(model, batch, objective("mle_aug"))
    assert losses.dtype == torch.float32
    torch.testing.assert_close(losses, expected, rtol=0.02, atol=0)


def test_autocast_changes_neither_the_layout_nor_much_of_the_loss() -> None:
    model, batch = tiny("llama"), problems()
    scorer = Scorer(model, 0, tokens_per_pass=512)
    expected, _ = learn(scorer, model, scorer.plan(batch), objective("mle_aug"))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        losses = sum(
            one.problem_losses for one in scorer.losses(model, scorer.plan(batch), objective("mle_aug"))
        )
    torch.testing.assert_close(losses, expected, rtol=0.02, atol=0)


@pytest.mark.skipif(find_spec("peft") is None, reason="peft is not installed")
def test_adapters_learn_as_they_would_from_each_target_alone() -> None:
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(
        tiny("llama"), LoraConfig(target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    )
    assert_same(Scorer(model, 0, tokens_per_pass=512), model.eval(), problems(), objective("mml"))


@pytest.mark.parametrize("layout", [None, Flat()], ids=["tree", "flat"])
def test_credits_weigh_each_token_of_a_target_by_itself(layout: Layout | None) -> None:
    model, rng = tiny("llama"), random.Random(7)
    whole = branching(rng, 9, 4, 8)
    credited = [
        replace(target, credits=tuple(rng.choice([-1.0, 0.0, 0.5, 2.0]) for _ in target.tokens))
        for target in whole.targets[1:]
    ]
    problem = Targets(whole.prompt, (whole.targets[0], *credited))  # the first as ever, all its tokens alike
    scorer = Scorer(model, 0, layout=layout)
    losses, found = learn(scorer, model, scorer.plan([problem]), MLEAug())
    model.zero_grad()
    loss = torch.zeros(())
    for target in problem.targets:
        logits = model(input_ids=torch.tensor([problem.prompt + target.tokens])).logits[0]
        log_probs = logits.log_softmax(-1)[len(problem.prompt) - 1 : -1]
        scored = log_probs.gather(1, torch.tensor(target.tokens)[:, None])[:, 0]
        loss = loss - (scored * torch.tensor(target.credits or [1.0] * len(target))).sum()
    loss.backward()
    torch.testing.assert_close(losses, loss.detach()[None], rtol=TOLERANCE, atol=1e-4)
    assert largest_error(found, gradients(model)) < TOLERANCE


def test_a_token_without_credit_has_a_gradient_of_exactly_zero() -> None:
    model = tiny("gpt2")
    scorer = Scorer(model, 0)
    nothing = Target((5, 6, 7), credits=(0.0, 0.0, 0.0))
    _, found = learn(scorer, model, scorer.plan([Targets((1, 2), (nothing,))]), MLEAug())
    assert all(not gradient.any() for gradient in found.values())
