"""Table 1: MLE, MML, MLE-Aug and beta-MML, each a loss of one problem's targets.

An objective of your own is a class like these, which settings name by `package.module:name`; folders around
the method register theirs. `log_probs_S` runs over the targets of one problem, the reference first; the
result is a scalar. Importing this needs no torch, because reports read labels and colours here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

from partway import registry
from partway.errors import ConfigError, suggestion
from partway.language import Language, Trace
from partway.learning.token_tree import Target
from partway.problem import Problem
from partway.registry import imported
from partway.sample import Sample

if TYPE_CHECKING:
    from torch import Tensor

    from partway.models.text import Codec


@dataclass(frozen=True)
class Objective(ABC):
    """A loss of one problem's targets; its fields are its parameters, which `objective_args` sets.

    `label` is its name in tables and figures, `colours` are names in `runreports.theme` by kind of
    self-sampling, and `meaning` is a sentence for the report. `couples` says whether the weight of one target
    in the gradient depends on the log-probs of the others; if not, the loss is linear in them. True is right
    for any loss and costs forward passes for buffers that do not fit one pass.

    `normalization`: `length` divides each target's log-prob by its number of tokens; `solutions` turns the
    sum over B inside the objective into a mean (for MML the loss moves by a constant, the gradient stays).
    """

    label: ClassVar[str]
    meaning: ClassVar[str] = ""
    colours: ClassVar[Mapping[str, str]] = {}
    couples: ClassVar[bool] = True
    learns_reference_only: ClassVar[bool] = False

    normalization: str = field(default="sum", kw_only=True)

    @property
    def term(self) -> Callable[[Tensor], Tensor] | None:
        """What the distribution of a token, its row of log-probs over the vocabulary, adds to its log-prob.

        A function of many rows at once, `log_probs_N_V`, with a number for each; None: nothing. What `loss`
        gets as log-probs of targets are then sums of log-probs and terms.
        """
        return None

    @abstractmethod
    def loss(self, log_probs_S: Tensor, targets: Sequence[Target]) -> Tensor:
        """What is minimised."""

    def mean(self, loss: Tensor, solutions: int) -> Tensor:
        """The loss with a mean over so many solutions where the sum over B was."""
        return loss / solutions

    def __call__(self, log_probs_S: Tensor, targets: Sequence[Target]) -> Tensor:
        if self.normalization == "length":  # before the loss: MML's shares are then of mean log-probs
            log_probs_S = log_probs_S / log_probs_S.new_tensor([len(target) for target in targets])
        loss = self.loss(log_probs_S, targets)
        return self.mean(loss, len(targets)) if self.normalization == "solutions" else loss

    @property
    def least_samples(self) -> int:
        """How many samples of a problem it learns at least, in place of the buffer; 0: the buffer."""
        return 0

    def learned(
        self, problem: Problem, samples: Sequence[tuple[Sample, Trace]], language: Language, codec: Codec
    ) -> list[Target]:
        """This step's samples with what each of them, or of their tokens, counts, if samples are learned."""
        raise NotImplementedError(f"{self.label} learns the buffer")


@dataclass(frozen=True)
class MLE(Objective):
    """-log P(y*|x): the first target is the reference, the others are ignored."""

    label = "MLE"
    meaning = "MLE is maximum likelihood estimation"
    colours: ClassVar = {"none": "blue"}
    couples = False
    learns_reference_only = True

    def loss(self, log_probs_S: Tensor, targets: Sequence[Target]) -> Tensor:
        """The reference's alone."""
        return -targets[0].weight * log_probs_S[0]

    def mean(self, loss: Tensor, solutions: int) -> Tensor:
        """Nothing is summed over solutions."""
        return loss


@dataclass(frozen=True)
class MML(Objective):
    """-log of the sum over B of P(y|x): a target's weight in the gradient is its share of that sum."""

    label = "MML"
    meaning = "MML, maximum marginal likelihood, asks for any of the kept solutions"
    colours: ClassVar = {"fcs": "purple", "fcs+pcs": "vermilion"}

    def loss(self, log_probs_S: Tensor, targets: Sequence[Target]) -> Tensor:
        """beta-MML at beta = 1."""
        return BetaMML(1.0).loss(log_probs_S, targets)

    def mean(self, loss: Tensor, solutions: int) -> Tensor:
        """The sum stands inside the logarithm, so a mean over B moves the loss by log |B|."""
        return loss + math.log(solutions)


@dataclass(frozen=True)
class MLEAug(Objective):
    """-sum over B of w log P(y|x): every target counts by its weight, which is 1 in the paper."""

    label = "MLE-Aug"
    meaning = "MLE-Aug adds up the losses of all kept solutions of a problem"
    colours: ClassVar = {"fcs": "green", "fcs+pcs": "orange"}
    couples = False

    def loss(self, log_probs_S: Tensor, targets: Sequence[Target]) -> Tensor:
        """The weighted sum; weights may be of any sign."""
        return -(target_weights(log_probs_S, targets) * log_probs_S).sum()


@dataclass(frozen=True)
class BetaMML(Objective):
    """-(1/beta) log of the sum over B of w P(y|x)^beta: MML at beta = 1, MLE-Aug's balance as beta -> 0."""

    label = "β-MML"
    meaning = "beta-MML lies between asking for any of the kept solutions and asking for all"
    colours: ClassVar = {"fcs": "sky", "fcs+pcs": "dark"}

    beta: float = 0.25

    def __post_init__(self) -> None:
        if not 0 < self.beta <= 1:
            raise ConfigError(f"beta is {self.beta}, expected a number above 0 and up to 1; try 0.25")

    def loss(self, log_probs_S: Tensor, targets: Sequence[Target]) -> Tensor:
        """In logarithms, because the probability of a long solution is too small for a float."""
        assert all(target.weight > 0 for target in targets), "a weight that is not positive has no logarithm"
        best = log_probs_S.max().detach()  # apart, or its rounding would be an error of every weight
        # log of w P^beta, less the constant beta * best that every target has.
        exponents_S = self.beta * (log_probs_S - best) + target_weights(log_probs_S, targets).log()
        return -best - exponents_S.logsumexp(dim=0) / self.beta

    def mean(self, loss: Tensor, solutions: int) -> Tensor:
        """The sum stands inside the logarithm."""
        return loss + (1 / self.beta) * math.log(solutions)


def target_weights(log_probs_S: Tensor, targets: Sequence[Target]) -> Tensor:
    """The targets' weights, as numbers like their log-probs."""
    return log_probs_S.new_tensor([target.weight for target in targets])


TABLE_1: dict[str, type[Objective]] = {"mle": MLE, "mml": MML, "mle_aug": MLEAug, "beta_mml": BetaMML}


def objective_class(name: str) -> type[Objective]:
    """The objective that a setting names: a known one, or your own as `package.module:name`.

    >>> objective_class("mml").label
    'MML'
    """
    if ":" not in name:
        found: type[Objective] = registry.part("objectives", name, built_in=TABLE_1)
        return found
    kind = imported(name, "objective")
    if not (isinstance(kind, type) and issubclass(kind, Objective)):
        raise ConfigError(f"objective is {name!r}, a {type(kind).__name__}, expected a subclass of Objective")
    return kind


def objective(
    name: str, parameters: Mapping[str, Any] | None = None, normalization: str = "sum"
) -> Objective:
    """The objective that settings name, with its parameters.

    >>> objective("beta_mml", {"beta": 0.5}).couples
    True
    >>> objective("mml", {"beta": 0.5})
    Traceback (most recent call last):
    partway.errors.ConfigError: objective_args has 'beta', but mml takes no parameters
    """
    kind, given = objective_class(name), parameters or {}
    known = [f.name for f in fields(kind) if f.name != "normalization"]
    for key in given:
        if key not in known:
            raise ConfigError(
                f"objective_args has {key!r}, but {name} takes {', '.join(known) or 'no parameters'}"
                + suggestion(key, known)
            )
    return kind(**given, normalization=normalization)


def objective_names() -> tuple[str, ...]:
    """All that have a name: the paper's in the order of its results, then what folders around it add."""
    return *TABLE_1, *registry.parts("objectives")


def named_objective(name: str) -> type[Objective] | None:
    """The objective with this name, for tables and figures; None for your own, or if it is gone."""
    return objective_class(name) if name in objective_names() else None


def label_of(name: str) -> str:
    """What tables and figures call an objective, also one whose code is not here any more.

    >>> label_of("beta_mml"), label_of("mypackage.mine:HalfPartial")
    ('β-MML', 'HalfPartial')
    """
    found = named_objective(name)
    return found.label if found is not None else name.rpartition(":")[2]
