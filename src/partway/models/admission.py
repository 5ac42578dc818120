"""Which prompts are read next: samples wait here for rows of the sampling tree.

What waits is a prompt's number with the streams of its samples: all of them at first, and again those whose
rows had to make room.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from partway.models.frontier import Frontier

Waiting = tuple[int, NDArray[np.uint64]]


class Admission:
    """Admits as many prompts as will probably fit into `budget` rows, the longest prompts first.

    No more than `prompt_budget` of them have rows at a time.

    A prompt needs about one row per distinct completion. Their share is estimated from those that ended, and
    from the paper's regime as if that were a hundred samples more.
    """

    def __init__(
        self,
        prompts: Sequence[Sequence[int]],
        waiting: Iterable[Waiting],
        budget: int,
        prompt_budget: int | None = None,
    ) -> None:
        self.budget = budget
        self.prompt_budget = budget if prompt_budget is None else prompt_budget
        self.waiting = deque(sorted(waiting, key=lambda one: -len(prompts[one[0]])))

    def admissible(self, frontier: Frontier) -> list[Waiting]:
        """What to admit now; at least one if there are no rows."""
        if not self.waiting:
            return []
        share = (30 + frontier.distinct) / (100 + frontier.drawn)
        room = self.budget - frontier.expected_rows(share)
        admitted: list[Waiting] = []
        if len(frontier.rows) and room < self.budget / 4:  # a few large forwards beat many small ones
            return admitted
        prompts = self.prompt_budget - frontier.live_prompts
        while self.waiting and (len(admitted) < prompts or not (admitted or len(frontier.rows))):
            need = max(1, math.ceil(share * len(self.waiting[0][1])))
            if need > room and (admitted or len(frontier.rows)):
                break
            admitted.append(self.waiting.popleft())
            room -= need
        return admitted

    def return_evicted(self, evicted: Iterable[Waiting]) -> None:
        """Let evicted samples start again; as their numbers are their own, they will draw the same tokens."""
        self.waiting.extendleft(evicted)
