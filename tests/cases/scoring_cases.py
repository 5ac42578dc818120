"""Small random models of every family, targets that share beginnings, and the obvious way to score them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    BloomConfig,
    Gemma2Config,
    GPT2Config,
    GPTNeoConfig,
    GPTNeoXConfig,
    LlamaConfig,
    MambaConfig,
    MistralConfig,
    PreTrainedModel,
    Qwen3Config,
)
from transformers.models.auto import AutoModelForCausalLM

from partway.learning.layouts import score
from partway.learning.scoring import LearningPlan, LossFunction, PassLoss, Scorer
from partway.learning.token_tree import Targets
from partway.objectives import Objective

VOCABULARY = 61
TOLERANCE = 1e-4  # of losses and gradients, relative
ENDS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
ROTARY = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
CONFIGS = {
    "gpt_neo": GPTNeoConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_layers=2,
        num_heads=4,
        attention_types=[[["global", "local"], 1]],
        window_size=64,
        max_position_embeddings=1024,
        attention_dropout=0.0,
        resid_dropout=0.0,
        embed_dropout=0.0,
        **ENDS,
    ),
    "gpt2": GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=512,
        attn_pdrop=0.0,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        **ENDS,
    ),
    "llama": LlamaConfig(**ROTARY, **ENDS),
    "qwen3": Qwen3Config(**ROTARY, head_dim=8, **ENDS),
    "gpt_neox": GPTNeoXConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        **ENDS,
    ),
    "mistral": MistralConfig(**ROTARY, sliding_window=64, **ENDS),
    "gemma2": Gemma2Config(**ROTARY, head_dim=8, sliding_window=64, final_logit_softcapping=3.0, **ENDS),
    "bloom": BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4, **ENDS),
    "mamba": MambaConfig(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, **ENDS),
}


def tiny(family: str, attention: str | None = None) -> PreTrainedModel:
    """A random model, with weights large enough that what it sees makes a difference."""
    torch.manual_seed(0)
    config = deepcopy(CONFIGS[family])  # a model writes its kind of attention into it
    model = AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4)
    return model.eval()


def branching(rng: random.Random, prompt: int, solutions: int, length: int) -> Targets:
    """Targets of about `length` tokens, each of which leaves an earlier one somewhere."""

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(rng.randrange(VOCABULARY) for _ in range(count))

    targets = [tokens(length)]
    while len(targets) < solutions:
        known = rng.choice(targets)
        shared = rng.randrange(len(known))
        targets.append(known[:shared] + tokens(max(1, length - shared + rng.randrange(-3, 4))))
    return Targets.of(tokens(prompt), tuple(targets))


def log_probs(scorer: Scorer, model: nn.Module, problems: Sequence[Targets]) -> list[Tensor]:
    """log P(target | prompt) of every target of every problem, without gradients."""
    plan = scorer.plan(problems)
    with torch.no_grad():
        return score(model, plan.bundles, plan.problems, scorer.pad_id)


def alone(model: PreTrainedModel, prompt: tuple[int, ...], target: tuple[int, ...]) -> Tensor:
    """log P(target | prompt) of one sequence, written down as its definition."""
    logits = model(input_ids=torch.tensor([prompt + target], device=model.device)).logits[0]
    token_log_probs = logits.double().log_softmax(-1)[len(prompt) - 1 : -1]
    return (
        token_log_probs.gather(1, torch.tensor(target, device=logits.device)[:, None]).sum().to(logits.dtype)
    )


def reference_loss(
    model: PreTrainedModel, problems: list[Targets], objective: LossFunction
) -> tuple[Tensor, dict[str, Tensor]]:
    """Losses of the problems and gradients of their mean, each target scored in a row of its own."""
    losses = []
    for problem in problems:
        log_probs_S = torch.stack([alone(model, problem.prompt, target) for target in problem.sequences])
        losses.append(objective(log_probs_S, problem.targets))
    model.zero_grad()
    torch.stack(losses).mean().backward()
    return torch.stack(losses).detach().float(), gradients(model)


class EachAlone:
    """Every target scored in a row of its own, once for any number of objectives."""

    def __init__(self, model: PreTrainedModel, problems: list[Targets]) -> None:
        self.problems = problems
        self.log_probs: list[Tensor] = []  # of each problem
        found: list[dict[str, Tensor]] = []  # of each target
        for problem in problems:
            scored = []
            for target in problem.sequences:
                model.zero_grad()
                scored.append(alone(model, problem.prompt, target))
                scored[-1].backward()
                found.append(gradients(model))
            self.log_probs.append(torch.stack(scored).detach())
        self.gradients = {name: torch.stack([one[name] for one in found]) for name in found[0]}

    def loss(self, objective: LossFunction) -> tuple[Tensor, dict[str, Tensor]]:
        """What `reference_loss` gives, by the chain rule."""
        log_probs = [one.clone().requires_grad_() for one in self.log_probs]
        pairs = zip(log_probs, self.problems, strict=True)
        losses = torch.stack([objective(one, problem.targets) for one, problem in pairs])
        weights = torch.cat(torch.autograd.grad(losses.mean(), log_probs))
        expected = {name: torch.tensordot(weights, each, 1) for name, each in self.gradients.items()}
        return losses.detach().float(), expected


def learn(
    scorer: Scorer, model: nn.Module, plan: LearningPlan, loss: Objective, **options: Any
) -> tuple[Tensor, dict[str, Tensor]]:
    """Losses of the problems and gradients, as a trainer gets them."""
    model.zero_grad()
    passes: list[PassLoss] = []
    for one in scorer.losses(model, plan, loss, **options):
        one.loss.backward()
        passes.append(one)
    return torch.stack([one.problem_losses for one in passes]).sum(0), gradients(model)


def gradients(model: PreTrainedModel) -> dict[str, Tensor]:
    """A copy of every gradient there is, by the name of its parameter."""
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def largest_error(found: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    """The largest error of any parameter's gradient, relative to the norm of that gradient."""
    assert found.keys() == expected.keys()
    scale = max(gradient.norm().item() for gradient in expected.values())
    return max(
        (found[name] - expected[name]).norm().item() / max(expected[name].norm().item(), 1e-4 * scale)
        for name in expected
    )
