"""Policy gradients with a credit for each step: what follows a mistake is neither praised nor blamed for it.

One number for a whole sample also pays for the steps after the one that went wrong. Here every step of a
sample has an advantage of its own, and the tokens of a step count by it. Credit by executed states is the
idea of EGCA (arXiv 2603.16158), too. Both estimators compare samples of one group only; no model of values is
learned.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import ClassVar

from partway.errors import SolutionError
from partway.language import Language, Trace
from partway.learning.token_tree import Target
from partway.models.text import Codec
from partway.objectives import MLEAug
from partway.problem import Problem
from partway.sample import Sample

Group = Sequence[
    tuple[Trace, int]
]  # the traces of a problem's distinct samples, and how often each was drawn


@dataclass(frozen=True)
class StepCredit(MLEAug):
    """An objective over a step's own samples in which each step counts by itself."""

    meaning = ""
    colours: ClassVar = {}

    @property
    def least_samples(self) -> int:
        """A group of one has nobody to compare with."""
        return 2

    @abstractmethod
    def advantages(self, problem: Problem, group: Group, language: Language) -> list[list[float]]:
        """What each part of one copy of each sample counts: its steps, then the end or a failure."""

    def learned(
        self, problem: Problem, samples: Sequence[tuple[Sample, Trace]], language: Language, codec: Codec
    ) -> list[Target]:
        """Each sample with the credits of its tokens, those of all its copies together."""
        group = [(trace, sample.count) for sample, trace in samples]
        total = sum(count for _, count in group)
        advantages = self.advantages(problem, group, language)
        return [
            Target(
                sample.tokens,
                "sample",
                sample.count / total,
                by_token(sample, of_sample, language, codec),
            )
            for (sample, _), of_sample in zip(samples, advantages, strict=True)
        ]


@dataclass(frozen=True)
class KnownSteps(StepCredit):
    """A step is worth 1 if it keeps to what the reference reaches, or if the answer is right, else 0.

    Its advantage is its worth less the mean of what the others did who were right as long. What comes after
    the first worthless step counts nothing.
    """

    label = "GRPO, steps"

    def advantages(self, problem: Problem, group: Group, language: Language) -> list[list[float]]:
        """For each part up to the one that leaves what is known."""
        reference = problem.reference
        known = [] if reference is None else language.trace_all([(problem, reference.text)])
        states = {state for trace in known for state in trace.states}
        right = [
            len(nodes_of(trace))
            if language.is_correct(problem, trace)
            else trace.longest_known_prefix(states)
            for trace, _ in group
        ]  # so many parts of each sample
        went_on, came_to = Counter[int](), Counter[int]()  # copies that were right at a depth, or up to it
        for (trace, count), length in zip(group, right, strict=True):
            went_on.update(dict.fromkeys(range(length), count))
            came_to.update(dict.fromkeys(range(min(length + 1, len(nodes_of(trace)))), count))
        return [
            [
                (depth < length)
                - _mean(went_on[depth] - (depth < length), came_to[depth] - 1, depth < length)
                for depth in range(min(length + 1, len(nodes_of(trace))))
            ]
            for (trace, _), length in zip(group, right, strict=True)
        ]


@dataclass(frozen=True)
class GroupTree(StepCredit):
    """A step is worth what it changes: the mean reward of the samples through its state, less that before it.

    The samples of a group form a tree in which beginnings that reach the same state are one node; the reward
    is 1 for a right answer. The value before a step leaves the sample itself out, so the expected gradient is
    that of P(right), where what a model writes next depends on the state alone.
    """

    label = "GRPO, tree"

    def advantages(self, problem: Problem, group: Group, language: Language) -> list[list[float]]:
        """For each part; the last one is valued by the sample's own reward."""
        rewards = [float(language.is_correct(problem, trace)) for trace, _ in group]
        ways = [[ROOT, *nodes_of(trace)] for trace, _ in group]
        earned, passed = Counter[Hashable](), Counter[Hashable]()
        for way, reward, (_, count) in zip(ways, rewards, group, strict=True):
            earned.update(dict.fromkeys(way, reward * count))
            passed.update(dict.fromkeys(way, count))

        def before(node: Hashable, reward: float) -> float:
            """The mean reward of the others who came there; of all others, if nobody did."""
            node = node if passed[node] > 1 else ROOT
            return _mean(earned[node] - reward, passed[node] - 1, reward)

        return [
            [
                (reward if after is way[-1] else earned[after] / passed[after]) - before(node, reward)
                for node, after in pairwise(way)
            ]
            for way, reward in zip(ways, rewards, strict=True)
        ]


ROOT: Hashable = ("",)
END: Hashable = ("end",)  # a leaf is never where others came from, so one name does for all


def nodes_of(trace: Trace) -> list[Hashable]:
    """Where each part of a sample leads: a step to its state; an answer, end or failure to a leaf."""
    going_on = trace.states[: len(trace.states) - trace.has_answer]
    return [*((state,) for state in going_on), END]


def _mean(total: float, count: int, otherwise: float) -> float:
    return total / count if count else otherwise


def by_token(
    sample: Sample, advantages: Sequence[float], language: Language, codec: Codec
) -> tuple[float, ...]:
    """For each token the advantage of the part of the sample that it is in; 0 beyond those that count."""
    ends = _step_ends(sample.completion, language)
    parts = (bisect_right(ends, start) for start in _starts(sample.tokens, codec))
    return tuple(advantages[part] if part < len(advantages) else 0.0 for part in parts)


def _step_ends(text: str, language: Language) -> list[int]:
    """Where in a text each of its steps ends, as far as it parses.

    >>> from partway import PythonLanguage
    >>> _step_ends("a = 1\\nfor i in [1]:\\n  a = 2\\n  b = 3\\nc = (", PythonLanguage())
    [6, 36]
    """
    ends: list[int] = []
    for place in accumulate(map(len, text.splitlines(keepends=True))):
        try:
            steps = len(language.parse(text[:place]))
        except SolutionError:
            continue  # in the middle of a step, or not a program any more
        ends[-1:] = [*ends[-1:], place] if steps > len(ends) else [place] * bool(ends)
    return ends


def _starts(tokens: Sequence[int], codec: Codec) -> list[int]:
    """Where in the text of some tokens each of them begins."""
    lengths = [len(codec.decode([token])) for token in tokens]
    if sum(lengths) != len(codec.decode(tokens)):  # a token may be a part of a letter
        lengths = [
            len(codec.decode(tokens[: n + 1])) - len(codec.decode(tokens[:n])) for n in range(len(tokens))
        ]
    return [0, *accumulate(lengths)][:-1]
