"""Scores targets and makes losses of their log-probs: one learning step, cut into passes.

A step is a plan of passes, each within the token budget, so memory is bounded however large buffers grow. The
gradients of the passes add up to that of the whole step. A problem whose targets do not fit one pass is
learned in parts. If the objective couples targets (MML, beta-MML), its gradient is a weighted sum of theirs:
forward-only passes first find the log-probs, and the weights that follow are constants while learning.
With dropout, targets that share a beginning on a tree also share its noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Protocol

import torch
from torch import Tensor, nn

from partway.learning.layout_check import checked_layout
from partway.learning.layouts import LONGEST, SHORTEST, Bundle, Layout, Tree, score
from partway.learning.passes import Term, device_of, empty_pass
from partway.learning.token_tree import Target, Targets


class LossFunction(Protocol):
    """A loss of one problem's log-probs, such as `partway.objectives.Objective`."""

    @property
    def couples(self) -> bool:
        """Whether the weight of one target in the gradient depends on the log-probs of the others."""

    @property
    def term(self) -> Term | None:
        """What a token's distribution adds to its log-prob, if anything."""

    def __call__(self, log_probs_S: Tensor, targets: Sequence[Target]) -> Tensor: ...


@dataclass(frozen=True)
class LearningPlan:
    """One learning step over some problems, cut into passes; `split` are problems that are in several.

    `weighing` and `learning` count the passes to make: the forward-only ones, which only an objective that
    couples targets needs, and those with a backward pass.
    """

    problems: tuple[Targets, ...]
    bundles: tuple[Bundle, ...]
    weighing_bundles: tuple[Bundle, ...]
    split: frozenset[int]
    weighing: int
    learning: int

    @property
    def tokens_computed(self) -> int:
        """Tokens the model reads in the passes that learn, padding included."""
        return sum(bundle.tokens_computed for bundle in self.bundles)

    def padded(self, weighing: int, learning: int) -> LearningPlan:
        """The same step with empty passes added, so that every process makes as many as the others."""
        assert weighing >= self.weighing, "passes can be added to a plan, not taken away"
        assert learning >= self.learning, "passes can be added to a plan, not taken away"
        return replace(self, weighing=weighing, learning=learning)


@dataclass(frozen=True)
class PassLoss:
    """The loss to backpropagate for one pass; on the CPU, what it adds to the loss of each problem."""

    loss: Tensor
    problem_losses: Tensor


class Scorer:
    """Scores targets in passes of at most `tokens_per_pass` tokens (a longer target is a pass alone).

    The layout (default: trees) is checked on `model` first; if it is not right there, another is used, with a
    warning.
    """

    def __init__(
        self,
        model: nn.Module,
        pad_id: int,
        *,
        layout: Layout | None = None,
        tokens_per_pass: int = 2048,
        learn_question: bool = False,
    ) -> None:
        self.model = model
        self.pad_id = pad_id
        self.learn_question = learn_question
        self.tokens_per_pass = tokens_per_pass
        trees = Tree(max(SHORTEST, min(LONGEST, tokens_per_pass)))
        self.layout = checked_layout(model, layout or trees, pad_id=pad_id)

    def plan(self, problems: Sequence[Targets]) -> LearningPlan:
        """Cut one learning step into passes."""
        if self.learn_question:
            problems = [problem.with_question() for problem in problems]
        bundles = tuple(self.layout.bundles(problems, self.tokens_per_pass))
        appearances = Counter(p for bundle in bundles for p in {tree.problem for tree in bundle.trees})
        # In more than one pass: no pass sees all log-probs of these problems, so their weights come first.
        split = frozenset(problem for problem, count in appearances.items() if count > 1)
        weighing = tuple(part for bundle in bundles if (part := bundle.only(split)) is not None)
        return LearningPlan(tuple(problems), bundles, weighing, split, len(weighing), len(bundles))

    def losses(
        self, model: nn.Module, plan: LearningPlan, objective: LossFunction, *, batch_size: int | None = None
    ) -> Iterator[PassLoss]:
        """One loss per pass; their gradients add up to that of the mean of `objective` over `batch_size`
        problems (default: those of the plan). Backpropagate each before asking for the next."""
        share = 1 / (batch_size or max(1, len(plan.problems)))
        weights = self._weights(model, plan, objective)
        for bundle in plan.bundles:
            log_probs = bundle.score(model, self.pad_id, objective.term)
            total, by_problem = log_probs.new_zeros(()), log_probs.new_zeros(len(plan.problems))
            for problem, chosen, log_probs_S in _by_problem(bundle, log_probs):
                if problem in plan.split:
                    loss, reported = weights[problem](chosen, log_probs_S)
                else:
                    loss = reported = objective(log_probs_S, plan.problems[problem].targets)
                total = total + loss
                by_problem[problem] = reported.detach()
            yield PassLoss((total * share).to(device_of(model)), by_problem)
        for _ in range(plan.learning - len(plan.bundles)):
            # Sharded models gather weights in every pass: a process that is done takes part until all are.
            loss = empty_pass(model, self.pad_id)
            yield PassLoss(loss, torch.zeros(len(plan.problems)))

    def _weights(self, model: nn.Module, plan: LearningPlan, objective: LossFunction) -> dict[int, _Weights]:
        """How much each target of the split problems counts in the gradient."""
        with torch.no_grad():
            bundles = plan.weighing_bundles if objective.couples else ()
            log_probs = score(model, bundles, plan.problems, self.pad_id, objective.term)
            for _ in range(plan.weighing - len(plan.weighing_bundles) if objective.couples else 0):
                empty_pass(model, self.pad_id)
        weights = {}
        for problem in plan.split:
            log_probs_S = log_probs[problem].requires_grad_()
            loss = objective(log_probs_S, plan.problems[problem].targets)
            # The chain rule by hand: dL/dtheta = sum of dL/dlogP * dlogP/dtheta; these are the first factors.
            (gradient,) = torch.autograd.grad(loss, log_probs_S)
            weights[problem] = _Weights(gradient, loss.detach() if objective.couples else None)
        return weights


@dataclass(frozen=True)
class _Weights:
    """The gradient of one problem's loss with respect to its log-probs; `loss` is None if that is linear."""

    weights: Tensor
    loss: Tensor | None

    def __call__(self, chosen: Sequence[int], log_probs: Tensor) -> tuple[Tensor, Tensor]:
        """What the chosen targets add: to the gradient, through the first, and to the loss, the second."""
        weights = self.weights[list(chosen)]
        weighted = (weights * log_probs).sum()
        if self.loss is None:
            return weighted, weighted
        total = self.weights.abs().sum()  # of signed weights the sum may be zero
        return weighted, self.loss * weights.abs().sum() / total.clamp(min=torch.finfo(total.dtype).tiny)


def _by_problem(bundle: Bundle, log_probs: Tensor) -> Iterator[tuple[int, list[int], Tensor]]:
    """For each problem in the pass the targets that are in it, in order, and their log-probs."""
    slots = [(tree.problem, target) for tree in bundle.trees for target in tree.targets]
    order = sorted(range(len(slots)), key=slots.__getitem__)
    for problem, group in groupby(order, key=lambda slot: slots[slot][0]):
        found = list(group)
        yield problem, [slots[slot][1] for slot in found], log_probs[found]
