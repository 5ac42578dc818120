"""Policy gradients as objectives: a step's own samples, each weighed by its reward and those of the others.

The gradient of a step is the sum over samples of weight times the gradient of log P(sample), so the loss is
MLE-Aug's. One update is made per batch, with the very tokens that the weights which are updated have drawn,
so no ratio of probabilities is needed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean, stdev
from typing import ClassVar

from partway.cli.options import counted
from partway.errors import CodeError, ConfigError, suggestion
from partway.language import Language, Trace
from partway.learning.token_tree import Target
from partway.models.text import Codec
from partway.objectives import MLEAug
from partway.problem import Problem
from partway.registry import imported
from partway.rewards import credit
from partway.sample import Sample

REWARDS = ("answer", "trace")
EPSILON = 1e-4  # TRL's, so that a group of nearly equal rewards does not explode


@dataclass(frozen=True)
class PolicyGradient(MLEAug):
    """An objective over a step's own samples, rewarded for a right answer, by `trace` also for less.

    `reward` may also be your own function, as `package.module:name`.
    """

    meaning = ""
    colours: ClassVar = {}

    reward: str = "answer"

    def __post_init__(self) -> None:
        if ":" in self.reward:
            imported(self.reward, "reward")
        elif self.reward not in REWARDS:
            near = suggestion(self.reward, REWARDS)
            raise ConfigError(
                f"reward is {self.reward!r}, expected answer, trace or package.module:name{near}"
            )

    @property
    def least_samples(self) -> int:
        """A group of one has no mean to compare with."""
        return 2

    @abstractmethod
    def advantages(self, rewards: Sequence[float]) -> list[float]:
        """What each of a problem's n samples counts, given all their rewards."""

    def learned(
        self, problem: Problem, samples: Sequence[tuple[Sample, Trace]], language: Language, codec: Codec
    ) -> list[Target]:
        """Each sample with the sum of the advantages of all its copies."""
        weights = self.weigh(problem, samples, language)
        return [Target(one.tokens, "sample", w) for (one, _), w in zip(samples, weights, strict=True)]

    def weigh(
        self, problem: Problem, samples: Sequence[tuple[Sample, Trace]], language: Language
    ) -> list[float]:
        """What all copies of each sample count together; one without a reward counts nothing."""
        rewards = self.rewards(problem, samples, language)
        counts = [0 if r is None else sample.count for (sample, _), r in zip(samples, rewards, strict=True)]
        if sum(counts) < self.least_samples:
            return [0.0] * len(samples)
        known = zip(rewards, counts, strict=True)
        weights = iter(self.advantages([r for r, count in known if r is not None for _ in range(count)]))
        return [sum(next(weights) for _ in range(count)) for count in counts]

    def rewards(
        self, problem: Problem, samples: Sequence[tuple[Sample, Trace]], language: Language
    ) -> list[float | None]:
        """Of each sample 1 for a right answer, else 0 or by `trace` partial credit, or as a function says."""
        if ":" in self.reward:
            return own_rewards(self.reward, problem, [sample.text for sample, _ in samples])
        known: list[Trace] = []  # without a reference, only the answer counts
        if self.reward == "trace" and problem.reference is not None:
            known = language.trace_all([(problem, problem.reference.text)])
        return [credit(trace, problem, known, language=language) for _, trace in samples]


def own_rewards(path: str, problem: Problem, texts: Sequence[str]) -> list[float | None]:
    """What a function with the signature of TRL's rewards says of texts that are to solve a problem.

    Beside `prompts` and `completions` it gets `answer`, `solution` and the other columns of the problem's
    row, a list for each. A sample whose reward is None is not learned.
    """
    solution = None if problem.reference is None else problem.reference.text
    columns = {**problem.meta, "answer": problem.answer, "solution": solution}
    lists = {name: [value] * len(texts) for name, value in columns.items()}
    rewards = imported(path, "reward")(
        prompts=[problem.question] * len(texts), completions=list(texts), **lists
    )
    if len(rewards) != len(texts):
        told = f"gave {len(rewards):,} for {counted(len(texts), 'completion')}"
        raise CodeError(f"reward is {path!r}, which {told}; expected as many rewards as completions")
    return [None if reward is None else float(reward) for reward in rewards]


@dataclass(frozen=True)
class GRPO(PolicyGradient):
    """A reward's distance from the group's mean in standard deviations (Shao et al. 2024, eq. 3), over n.

    >>> GRPO().advantages([1.0, 1.0])
    [0.0, 0.0]
    """

    label = "GRPO"

    def advantages(self, rewards: Sequence[float]) -> list[float]:
        """Distances in standard deviations."""
        mean, spread = fmean(rewards), stdev(rewards)  # over n - 1, as TRL has it
        return [(reward - mean) / (spread + EPSILON) / len(rewards) for reward in rewards]


@dataclass(frozen=True)
class RLOO(PolicyGradient):
    """A reward less the mean of the others (Ahmadian et al. 2024, eq. 8), over n.

    >>> RLOO().advantages([1.0, 0.0])
    [0.5, -0.5]
    """

    label = "RLOO"

    def advantages(self, rewards: Sequence[float]) -> list[float]:
        """Distances from the mean of the others."""
        n, total = len(rewards), sum(rewards)
        return [(reward - (total - reward) / (n - 1)) / n for reward in rewards]


@dataclass(frozen=True)
class MaxRL(PolicyGradient):
    """A reward's share of all rewards less an equal share (Tajwar et al. 2026): log-likelihood, not reward.

    With 0/1 rewards the gradient is the mean of log P over right samples, less that over all as a baseline.
    Groups without a right one are left out, so it is that of log P(right) up to order n - 1, not n.

    >>> MaxRL().advantages([1.0, 0.0, 0.0, 0.0]), MaxRL().advantages([0.0, 0.0])
    ([0.75, -0.25, -0.25, -0.25], [0.0, 0.0])
    """

    label = "MaxRL"

    def advantages(self, rewards: Sequence[float]) -> list[float]:
        """Shares less equal shares."""
        n, total = len(rewards), sum(rewards)
        # All wrong: there is no right sample whose likelihood could be raised.
        return [reward / total - 1 / n for reward in rewards] if total else [0.0] * n


@dataclass(frozen=True)
class PKPO(PolicyGradient):
    """What a sample adds to the best of k, over all k of the n samples that have it (Walder, Karkhanis 2025).

    This is their estimator with the baseline of the k - 1 others, of the gradient of the expected best of k.

    >>> PKPO(k=2).advantages([1.0, 0.0, 0.0])
    [0.6666666666666666, 0.0, 0.0]
    """

    label = "PKPO"

    k: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k < 2:
            raise ConfigError(f"k is {self.k}, expected at least 2: a sample is compared with k - 1 others")

    @property
    def least_samples(self) -> int:
        """There is no best of k among fewer."""
        return self.k

    def advantages(self, rewards: Sequence[float]) -> list[float]:
        """Mean gains over the best of k - 1 others."""
        n, k = len(rewards), self.k
        assert k <= n, "the baseline is the best of the other k - 1"
        gained = []
        # All sets of k have comb(n, k) equal chances; each is counted by its best other sample.
        for index, reward in enumerate(rewards):
            others = sorted([*rewards[:index], *rewards[index + 1 :]])
            # comb(place, k - 2) sets of k - 1 others have this one as their best.
            gains = (comb(place, k - 2) * max(0.0, reward - best) for place, best in enumerate(others))
            gained.append(sum(gains))
        return [gain / comb(n, k) for gain in gained]
