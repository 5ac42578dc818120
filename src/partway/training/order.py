"""The order of problems: which ones a step takes, and which of these this process takes.

`BatchOrder` is a function of the seed alone, so it needs no saving. The problems of a step are the same
for any number of processes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Protocol, TypeVar

from torch.utils.data import DataLoader

from partway import registry
from partway.problem import Problem
from partway.training.config import SelfSamplingConfig
from partway.training.shared_buffers import Buffers

T = TypeVar("T")


class BatchOrder:
    """Batches of indices for a data loader: per step, one (maybe empty) batch per accumulation step.

    Every epoch is a new permutation, cut into steps of `size` problems; the last step takes what is left. No
    problem appears twice in a step, and each belongs to exactly one process.
    """

    def __init__(
        self, problems: int, size: int, *, seed: int, accumulation: int = 1, rank: int = 0, world: int = 1
    ) -> None:
        self.problems, self.size, self.accumulation = problems, size, accumulation
        self.rank, self.world, self.epoch = rank, world, 0
        # Two: near an epoch's end, the steps ahead are in the next. Resumed, a run needs no state of this.
        self._permutation = lru_cache(maxsize=2)(lambda epoch: shuffled(problems, f"{seed}/{epoch}"))

    @classmethod
    def of(cls, args: SelfSamplingConfig, problems: int) -> BatchOrder:
        """The order that the settings of this process ask for."""
        return cls(
            problems,
            args.problems_per_step,
            seed=args.seed if args.data_seed is None else args.data_seed,
            accumulation=args.gradient_accumulation_steps,
            rank=args.process_index,
            world=args.world_size,
        )

    @property
    def steps_per_epoch(self) -> int:
        """Optimiser steps in one pass over the problems."""
        return -(-self.problems // self.size)

    def batch(self, step: int) -> list[int]:
        """The problems of a step of the run (counted from 0), over all processes."""
        epoch, place = divmod(step, self.steps_per_epoch)
        return self._permutation(epoch)[place * self.size : (place + 1) * self.size]

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch to iterate over."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.steps_per_epoch * self.accumulation

    def __iter__(self) -> Iterator[list[int]]:
        start = self.epoch * self.steps_per_epoch
        for step in range(start, start + self.steps_per_epoch):
            yield from self.parts(step)

    def parts(self, step: int) -> list[list[int]]:
        """The problems of a step that this process takes, one part per accumulation step."""
        return self.divided(self.batch(step))

    def divided(self, batch: Sequence[T]) -> list[list[T]]:
        """Of all that a step takes, what this process takes, one part per accumulation step."""
        # By stride: the problems of a step are the same for any number of processes, only divided.
        own = batch[self.rank :: self.world]
        return [list(own[part :: self.accumulation]) for part in range(self.accumulation)]


class AddedOrder(Protocol):
    """An order of problems that looks at what is solved by now, from a folder around the method."""

    turns: list[int]  # all that a checkpoint needs, a number for each problem

    def batch(self, step: int) -> list[int]:
        """The problems of a step of the run (counted from 0), over all processes."""

    def put_back(self, done: int) -> None:
        """Let the last batch queue up again, as if it had not been taken if its step is not `done`."""

    def go_back_to(self, turns: Sequence[int]) -> None:
        """Queue up as a checkpoint says."""


class Batches:
    """What each step takes: its problems, this process's parts of them, and how many samples each gets."""

    def __init__(self, args: SelfSamplingConfig, problems: Sequence[Problem], buffers: Buffers) -> None:
        self.args, self.problems, self.buffers = args, problems, buffers
        self.order = BatchOrder.of(args, len(problems))
        self.mixed: AddedOrder | None = None
        if args.solved_share is not None:
            self.mixed = registry.part("choices", "solved_share").of(args, problems, buffers.is_solved)
        self.parts: list[list[Problem]] = []  # what this process has still to take of the batch
        self._batch: list[Problem] = []

    def take(self, step: int, share: Callable[[], None]) -> list[Problem]:
        """The problems of a step (counted from 0), of all processes, once `share` made buffers current."""
        # Of all processes: losses are means over the whole batch, whoever computes them.
        if self.mixed is not None and self.buffers.are_due(self._batch):  # the last step's
            share()
        self._batch = [self.problems[index] for index in (self.mixed or self.order).batch(step)]
        if self.buffers.are_due(self._batch):
            share()
        self.buffers.will_explore(self._batch)
        self.parts = self.order.divided(self._batch)
        return self._batch

    def counts(self) -> dict[str, int]:
        """How many samples each problem of the batch gets, where that is not the same for all."""
        if self.args.sample_budget == "equal":
            return {}
        ids = [problem.id for problem in self._batch]
        tried = [(self.buffers.is_solved(key), self.buffers.drawn[key]) for key in ids]
        divided = registry.part("choices", "sample_budget")
        return dict(zip(ids, divided(self.args.samples_per_problem * len(ids), tried), strict=True))

    def ahead(self, step: int) -> list[list[Problem]]:
        """The parts that this process will take in a step that is still to come."""
        return [[self.problems[index] for index in part] for part in self.order.parts(step)]


def shuffled(count: int, seed: str) -> list[int]:
    """The numbers below `count` in an order of the seed's own."""
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order


class ProblemLoader(DataLoader[list[Problem]]):
    """Problems in a `BatchOrder`, as a data loader that Trainer can position."""

    def __init__(self, problems: Sequence[Problem], order: BatchOrder) -> None:
        super().__init__(problems, batch_sampler=order, collate_fn=list)  # type: ignore[arg-type]
        self.order = order

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch to iterate over."""
        self.order.set_epoch(epoch)
