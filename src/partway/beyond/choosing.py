"""Chooses the problems of a batch, and how many samples each gets, by what is solved so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from partway.problem import Problem
from partway.training.order import shuffled

if TYPE_CHECKING:
    from partway.training import SelfSamplingConfig

PATIENCE = 100  # samples without a solution after which a problem gets fewer and fewer


class Tried(NamedTuple):
    """A problem of the step: whether it has a solution by now, and how many samples were drawn for it."""

    is_solved: bool
    drawn: int

    @property
    def weight(self) -> Fraction:
        """1 if it is solved; 2 if not, until so many samples brought nothing that its chance is small.

        >>> [str(Tried(*one).weight) for one in ((True, 500), (False, 0), (False, 100), (False, 400))]
        ['1', '2', '2', '1/2']
        """
        return Fraction(1) if self.is_solved else Fraction(2 * PATIENCE, max(PATIENCE, self.drawn))


def divided(budget: int, problems: Sequence[tuple[bool, int]]) -> list[int]:
    """A count for each problem, `budget` in all: one for each, the rest by weight.

    >>> divided(12, [Tried(True, 40), Tried(False, 0), Tried(False, 400)])
    [4, 6, 2]
    """
    rest, weights = budget - len(problems), [Tried(*problem).weight for problem in problems]
    assert rest >= 0, "there is a sample for each problem"
    quotas = [rest * weight / sum(weights) for weight in weights]
    counts = [1 + int(quota) for quota in quotas]
    # What rounding down left goes to the largest remainders, the first of equal ones first.
    by_remainder = sorted(range(len(quotas)), key=lambda place: int(quotas[place]) - quotas[place])
    for place in by_remainder[: budget - sum(counts)]:
        counts[place] += 1
    return counts


class MixedOrder:
    """Batches of which `solved_share` are problems that have a solution by now, while there are so many.

    The two kinds wait in a queue each, at first in a shuffled order. A problem that was taken goes to the end
    of its queue. One that was solved then goes to the front of the other queue, before all that had a turn
    there. Whether a problem is solved changes only in a step that takes it.
    """

    def __init__(
        self, problems: int, size: int, solved_share: float, seed: int, is_solved: Callable[[int], bool]
    ) -> None:
        self.size = min(size, problems)
        self.wanted = round(solved_share * self.size)
        self.is_solved = is_solved
        # All that a checkpoint needs: the step of each problem's last turn in its queue, 0 if it had none.
        self.turns = [0] * problems
        self._order = shuffled(problems, f"{seed}/mixed")
        self._ranks = {index: rank for rank, index in enumerate(self._order)}
        self._queues: dict[bool, list[tuple[int, int]]] | None = None  # heaps of turns and ranks, by kind
        self._taken: dict[int, bool] = {}  # the problems of the last batch, and of which kind each was
        self._step = 0

    @classmethod
    def of(
        cls, args: SelfSamplingConfig, problems: Sequence[Problem], is_solved: Callable[[str], bool]
    ) -> MixedOrder:
        """The order that the settings ask for; `is_solved` is asked by id."""
        assert args.solved_share is not None, "the settings ask for it"
        seed = args.seed if args.data_seed is None else args.data_seed
        ids = [problem.id for problem in problems]
        return cls(len(ids), args.problems_per_step, args.solved_share, seed, lambda n: is_solved(ids[n]))

    def batch(self, step: int) -> list[int]:
        """The problems of a step of the run (counted from 0), over all processes."""
        self.put_back(step)
        queues = self._queues or self._queued()
        solved = max(self.size - len(queues[False]), min(self.wanted, len(queues[True])))
        self._step = step + 1
        kinds = [True] * solved + [False] * (self.size - solved)
        self._taken = {self._order[heappop(queues[kind])[1]]: kind for kind in kinds}
        return list(self._taken)

    def put_back(self, done: int) -> None:
        """Let the last batch queue up again, as if it had not been taken if its step is not `done`."""
        for index, was_solved in self._taken.items():
            is_solved = self.is_solved(index)
            if self._step <= done:
                self.turns[index] = self._step if is_solved == was_solved else 0
            assert self._queues is not None, "they were taken from there"
            heappush(self._queues[is_solved], (self.turns[index], self._ranks[index]))
        self._taken = {}

    def go_back_to(self, turns: Sequence[int]) -> None:
        """Queue up as a checkpoint says."""
        self.turns, self._taken, self._queues = list(turns), {}, None

    def _queued(self) -> dict[bool, list[tuple[int, int]]]:
        self._queues = {True: [], False: []}
        for rank, index in enumerate(self._order):
            self._queues[self.is_solved(index)].append((self.turns[index], rank))
        for queue in self._queues.values():
            heapify(queue)
        return self._queues
