"""Makes the targets of a problem: its kept solutions as tokens, or its samples as they were drawn."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import lru_cache

from partway.buffer import SolutionBuffer
from partway.errors import EngineError
from partway.language import Language, Trace
from partway.learning.token_tree import Target, TargetKind, Targets
from partway.models.loading import LanguageModel
from partway.objectives import Objective
from partway.problem import Problem
from partway.sample import Sample
from partway.sampling.drawing import step_seed
from partway.solution import Solution
from partway.training.config import SelfSamplingConfig


class KeptTargets:
    """Turns buffers into targets; tokens of what was seen lately are kept, since buffers change little."""

    def __init__(
        self,
        language_model: LanguageModel,
        config: SelfSamplingConfig,
        objective: Objective,
        language: Language,
    ) -> None:
        self._config, self._objective, self._language = config, objective, language
        self._limit = 1 if objective.learns_reference_only else config.solutions_per_step
        self._codec = codec = language_model.codec
        self.context_length = language_model.context_length
        self.tokens_of = lru_cache(maxsize=200_000)(lambda solution: tuple(codec.steps(solution)))
        read = lru_cache(maxsize=100_000)(lambda question: tuple(codec.prompt(question)))
        self.prompt_of: Callable[[Problem], tuple[int, ...]] = lambda one: read(language.question(one))

    def of(
        self, problem: Problem, buffer: SolutionBuffer, explored: Sequence[tuple[Sample, Trace]], step: int
    ) -> Targets | None:
        """The targets of one problem in a step: its buffer or, if the objective says so, what was explored.

        None if there are none, or none that fits the model.
        """
        if self._objective.least_samples:
            return self._drawn(problem, explored) if explored else None
        prompt = self.prompt_of(problem)
        fitting = [
            target
            for target in self._all(problem, buffer)
            if len(prompt) + len(target) <= self.context_length
        ]
        chosen = self._chosen(fitting, problem, step)
        return Targets(prompt, tuple(chosen)) if chosen else None

    def _all(self, problem: Problem, buffer: SolutionBuffer) -> list[Target]:
        """Solutions that give the answer with their end, so that stopping is learned; beginnings without."""
        ended: list[tuple[TargetKind, Solution]] = [("fully_correct", one) for one in buffer.learned]
        if problem.reference is not None:
            ended[0] = ("reference", ended[0][1])  # a buffer never loses it
        beginnings = () if self._config.partial_solutions == "guide" else buffer.partially_correct
        return [
            *(Target((*self.tokens_of(solution), *self._codec.closing), kind) for kind, solution in ended),
            *(Target(self.tokens_of(solution), "partially_correct") for solution in beginnings),
        ]

    def _chosen(self, targets: list[Target], problem: Problem, step: int) -> list[Target]:
        """As many as a step takes: the first, which is the reference if there is one, and a seeded choice."""
        if self._limit is None or len(targets) <= self._limit:
            return targets
        rng = random.Random(f"{step_seed(self._config.seed, step, 'learn')}/{problem.id}")
        return [targets[0], *rng.sample(targets[1:], self._limit - 1)]

    def _drawn(self, problem: Problem, explored: Sequence[tuple[Sample, Trace]]) -> Targets | None:
        """Samples token by token as they were drawn; None where nothing of them counts."""
        targets = self._objective.learned(problem, explored, self._language, self._codec)
        if not all(target.tokens for target in targets):  # those of the same text may be others
            raise EngineError(
                f"problem {problem.id}: the engine gives text without its tokens, which are learned; let "
                "the model draw its samples itself, or use a server that returns token ids"
            )
        kept = tuple(one for one in targets if one.weight and (not one.credits or any(one.credits)))
        return Targets(self.prompt_of(problem), kept) if kept else None

    def has_room(self, problem: Problem, prefix: Solution) -> bool:
        """Whether a beginning of a solution leaves room to continue it."""
        length = len(self.prompt_of(problem)) + len(self.tokens_of(prefix))
        return length < self.context_length
