"""The buffers of all problems, the same in every process, and the targets that are made of them.

Each process tells the others what it found.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from partway.buffer import Rules, SolutionBuffer
from partway.buffer.seeding import usual_length
from partway.errors import EngineError
from partway.language import Language, Trace
from partway.learning.token_tree import Target, TargetKind, Targets
from partway.models.loading import LanguageModel
from partway.objectives import Objective
from partway.problem import Problem
from partway.runs.run import save_buffers, saved_buffer_rows
from partway.sample import Sample
from partway.sampling.drawing import step_seed
from partway.sampling.guided import drafts_of
from partway.solution import Solution
from partway.training.config import SelfSamplingConfig
from partway.training.distributed import gathered


@dataclass
class _Findings:
    """What one process found since the last exchange: samples by step and place in the batch, and buffers.

    No problem is explored by two processes between exchanges, so its buffer in one message is the buffer.
    """

    samples: list[tuple[int, int, Sample]] = field(default_factory=list)
    buffers: dict[str, dict[str, Any]] = field(default_factory=dict)


class Buffers(Mapping[str, SolutionBuffer]):
    """A buffer per problem id. Between exchanges a process is ahead of the others by its own findings.

    A buffer that is not in `made` yet is seeded when it is first asked for: a step needs few of a million. It
    holds the reference, if there is one, and nothing else.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        made: Mapping[str, SolutionBuffer],
        seeded: Callable[[Problem], SolutionBuffer] = SolutionBuffer.seeded,
    ) -> None:
        self._problems = {problem.id: problem for problem in problems}
        self.made, self._seeded = dict(made), seeded
        self._sizes = {key: _sizes(buffer) for key, buffer in self.made.items()}
        self._totals = [sum(column) for column in zip(*map(self._sizes_of, self), strict=True)]
        self._findings = _Findings()
        self._changed: set[str] = set()
        self._places: dict[str, int] = {}  # in the batch that is being explored
        self._due: set[str] = set()  # explored by any process since the last exchange
        self.drawn: Counter[str] = Counter()  # samples of each problem up to the last exchange
        self.lack_references = any(problem.reference is None for problem in problems)

    @classmethod
    def of(
        cls, problems: Sequence[Problem], rules: Rules, language: Language, traces: Mapping[str, Trace]
    ) -> Buffers:
        """The buffers before training; `traces` are those of the references, by problem id."""
        usual = usual_length(problems)

        def seeded(problem: Problem) -> SolutionBuffer:
            return SolutionBuffer.seeded(problem, rules, language, traces.get(problem.id), usual)

        uncertain = [one for one in problems if not _holds_reference(one, traces)]
        return cls(problems, {problem.id: seeded(problem) for problem in uncertain}, seeded)

    def __getitem__(self, key: str) -> SolutionBuffer:
        if key not in self.made:
            self.made[key] = self._seeded(self._problems[key])
        return self.made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._problems)

    def __len__(self) -> int:
        return len(self._problems)

    def __contains__(self, key: object) -> bool:
        return key in self._problems

    def in_passing(self) -> Iterator[SolutionBuffer]:
        """All of them, to be looked at; those that were not made yet are not kept."""
        for key, problem in self._problems.items():
            yield self.made[key] if key in self.made else self._seeded(problem)

    def consider(self, sample: Sample, trace: Trace, step: int) -> list[Sample]:
        """Let the problem's buffer judge a traced sample: one for each verdict, as the next copy is known."""
        key, judged = sample.problem, []
        log_prob = None if sample.log_prob is None else round(sample.log_prob, 4)
        is_known = sample.weights is not None or bool(sample.endpoint)  # else those trained here, as they are
        weights = sample.weights if is_known else step - 1
        # The first of equal samples may be new; the others are known by then, and are counted as known.
        for count in (1, sample.count - 1):
            if count:
                verdict = self[key].consider(trace, step)
                seen = replace(sample, count=count, step=step, verdict=verdict)
                judged.append(replace(seen, log_prob=log_prob, weights=weights))
                if verdict.is_new:
                    self._changed.add(key)
                    self.measure(key)
        self._findings.samples += [(step, self._places[key], one) for one in judged]
        return judged

    def drafts_for(self, problem: Problem) -> tuple[Solution, ...]:
        """What an evaluation may guess ahead from: what is kept of a problem that is trained on too."""
        buffer = self.get(problem.id)
        return () if buffer is None or buffer.problem.question != problem.question else drafts_of(buffer)

    def are_due(self, batch: Sequence[Problem]) -> bool:
        """Whether a problem of the batch was explored since the last exchange, maybe by another process."""
        return not self._due.isdisjoint(problem.id for problem in batch)

    def will_explore(self, batch: Sequence[Problem]) -> None:
        """Note that these problems are being explored, each by some process."""
        self._places = {problem.id: place for place, problem in enumerate(batch)}
        self._due.update(problem.id for problem in batch)

    def exchange(self, accelerator: Accelerator) -> list[Sample]:
        """Give every process every buffer; returns all samples in the order one process would have."""
        # A process alone has nobody to tell, and writing buffers out takes long.
        if accelerator.num_processes > 1:
            self._findings.buffers = {key: self[key].to_json() for key in sorted(self._changed)}
        messages = gathered(accelerator, self._findings)
        for number, message in enumerate(messages):
            if number != accelerator.process_index:
                self._take_over(message.buffers)
        self._findings = _Findings()
        self._changed.clear()
        self._due.clear()
        # As one process alone would have drawn them: by step, then by place in the batch.
        placed = [entry for message in messages for entry in message.samples]
        samples = [sample for _, _, sample in sorted(placed, key=lambda entry: entry[:2])]
        for sample in samples:
            self.drawn[sample.problem] += sample.count
        return samples

    def is_solved(self, key: str) -> bool:
        """Whether a problem has a solution worth learning by now, its reference or one that was found."""
        if not self._sizes_of(key)[0]:
            return False
        return self._problems[key].reference is not None or bool(self[key].learned)

    def metrics(self) -> dict[str, float]:
        """Solutions kept per problem by kind; of rules beyond the paper's what became of them."""
        full, partial = self._totals
        rules = next(iter(self.values())).rules
        line = {
            "buffer/fcs_per_problem": full / len(self),
            "buffer/pcs_per_problem": partial / len(self),
        }
        if self.lack_references:
            line["buffer/problems_with_a_solution"] = sum(map(self.is_solved, self))
        if rules.added and all(one.learns_doubted for one in rules.added_rules):
            line["buffer/flagged"] = sum(len(buffer.doubts) for buffer in self.made.values())
        return line

    def write(self, directory: Path) -> None:
        """Save every buffer, one line each."""
        save_buffers(directory, self.in_passing())

    def read(self, directory: Path) -> None:
        """Take up what `write` saved."""
        self._take_over({row.pop("id"): row for row in saved_buffer_rows(directory)})

    def _take_over(self, rows: Mapping[str, Mapping[str, Any]]) -> None:
        language = next(iter(self.values())).language
        for key, row in rows.items():
            self.made[key] = SolutionBuffer.from_json(self._problems[key], row, language)
            self.measure(key)

    def measure(self, key: str) -> None:
        """Count a buffer that changed again, and only that: there may be a million of them."""
        before, now = self._sizes_of(key), _sizes(self[key])
        self._sizes[key] = now
        self._totals = [total - old + new for total, old, new in zip(self._totals, before, now, strict=True)]

    def _sizes_of(self, key: str) -> tuple[int, int]:
        """How many solutions are kept; of a buffer that has not changed yet, its reference."""
        return self._sizes.get(key) or (int(self._problems[key].reference is not None), 0)


def _holds_reference(problem: Problem, traces: Mapping[str, Trace]) -> bool:
    """Whether it is certain that a buffer will hold the reference, if there is one, and nothing else."""
    if problem.reference is None:
        return True
    trace = traces[problem.id]
    return bool(trace.states) and not trace.isolated


def _sizes(buffer: SolutionBuffer) -> tuple[int, int]:
    """How many solutions are kept: fully correct, partially correct."""
    return len(buffer.fully_correct), len(buffer.partially_correct)


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
        self.tokens_of = lru_cache(maxsize=200_000)(lambda of, finished: tuple(codec.target(of, finished)))
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
            *(Target(self.tokens_of(solution, True), kind) for kind, solution in ended),
            *(Target(self.tokens_of(solution, False), "partially_correct") for solution in beginnings),
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
        length = len(self.prompt_of(problem)) + len(self.tokens_of(prefix, False))
        return length < self.context_length
