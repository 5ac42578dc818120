"""Scoring: log P(target | prompt) of many targets, and the losses to learn from them, pass by pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from partway.models.token_tree import Targets

__all__ = ["LossFunction", "PassLoss", "Plan", "Scorer", "Targets"]


class LossFunction(Protocol):
    """A loss of one problem's log-probs, such as `partway.objectives.Objective`."""

    @property
    def couples(self) -> bool:
        """Whether the weight of one target in the gradient depends on the log-probs of the others."""
        ...

    def __call__(self, log_probs_S: Tensor, lengths_S: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Plan:
    """One learning step over some problems, cut into passes of bounded size.

    `weighing` counts the forward-only passes, `learning` those with a backward pass.
    """

    problems: tuple[Targets, ...]
    weighing: int
    learning: int
    tokens_computed: int
    tokens_distinct: int

    def padded(self, weighing: int, learning: int) -> Plan:
        """The same step with empty passes added, so that every process makes as many as the others."""
        return Plan(self.problems, weighing, learning, self.tokens_computed, self.tokens_distinct)


@dataclass(frozen=True)
class PassLoss:
    """The loss to backpropagate for one pass, and what it adds to the loss of each problem of the plan."""

    loss: Tensor
    problem_losses: Tensor


class Scorer:
    """Scores targets in passes of at most `tokens_per_pass` tokens (a longer target is a pass alone)."""

    def __init__(
        self,
        model: Any,
        pad_id: int,
        *,
        layout: str = "tree",
        tokens_per_pass: int = 4096,
        learn_question: bool = False,
    ) -> None:
        self.pad_id = pad_id
        self.layout = "flat"
        self.tokens_per_pass = tokens_per_pass
        self.learn_question = learn_question

    def plan(self, problems: Sequence[Targets]) -> Plan:
        """Cut one learning step into passes."""
        tokens = sum(len(p.prompt) + len(t) for p in problems for t in p.targets)
        return Plan(tuple(problems), 0, len(problems), tokens, tokens)

    def losses(
        self, model: Any, plan: Plan, objective: LossFunction, *, batch_size: int | None = None
    ) -> Iterator[PassLoss]:
        """One loss per pass; their gradients add up to that of the mean of `objective` over `batch_size`
        problems (default: those of the plan). Backpropagate each before asking for the next."""
        share = 1 / (batch_size or max(1, len(plan.problems)))
        for index in range(plan.learning):
            if index >= len(plan.problems):
                device = next(model.parameters()).device
                tokens = torch.tensor([[self.pad_id]], device=device)
                yield PassLoss(0.0 * model(input_ids=tokens).logits.sum(), torch.zeros(len(plan.problems)))
                continue
            problem = plan.problems[index]
            log_probs_S = self._score(model, problem)
            lengths_S = torch.tensor([len(t) for t in problem.targets], device=log_probs_S.device)
            loss = objective(log_probs_S, lengths_S)
            problem_losses = torch.zeros(len(plan.problems), device=loss.device)
            problem_losses[index] = loss.detach()
            yield PassLoss(loss * share, problem_losses)

    def log_probs(self, model: Any, problems: Sequence[Targets]) -> list[Tensor]:
        """log P(target | prompt) of every target of every problem, without gradients."""
        with torch.no_grad():
            return [self._score(model, problem) for problem in problems]

    def _score(self, model: Any, problem: Targets) -> Tensor:
        device = next(model.parameters()).device
        scores = []
        for target in problem.targets:
            tokens = torch.tensor([[*problem.prompt, *target]], device=device)
            log_probs = model(input_ids=tokens).logits[0, :-1].float().log_softmax(-1)
            token_log_probs = log_probs.gather(1, tokens[0, 1:, None])[:, 0]
            start = 0 if self.learn_question else len(problem.prompt) - 1
            scores.append(token_log_probs[start:].sum())
        return torch.stack(scores)
