"""Exploring ahead: servers already work on the batches after the one that is learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from partway.models.engine import Draw, Request
from partway.problem import Problem

Drawn = list[tuple[Request, list[Draw]]]
Complete = Callable[[Sequence[Request], int], list[list[Draw]]]


class Ahead:
    """Requests of later steps under way; `complete` answers requests, given a seed, in another thread.

    A request is made from the buffer as it is when it is sent. What comes back is judged by the buffer as it
    is when its step is made.
    """

    def __init__(self, complete: Complete, steps: int) -> None:
        self._complete = complete
        self._executor = ThreadPoolExecutor(steps + 1, thread_name_prefix="exploring")
        self._under_way: dict[tuple[int, str], tuple[Sequence[Request], Future[list[list[Draw]]]]] = {}
        self.last_step = 0

    def send(self, step: int, parts: Sequence[Sequence[Request]], seed: int) -> None:
        """Send what one process explores in a step, in the parts it will be considered in."""
        self.last_step = step
        for requests in parts:
            if requests:
                key = step, requests[0].problem.id  # a step takes a problem once
                self._under_way[key] = requests, self._executor.submit(self._complete, requests, seed)

    def drawn(self, step: int, problems: Sequence[Problem]) -> Drawn:
        """What was drawn for these problems of a step, as soon as all of it is there."""
        if not problems:
            return []
        requests, future = self._under_way.pop((step, problems[0].id))
        return list(zip(requests, future.result(), strict=True))

    def give_up(self) -> None:
        """Wait for nothing that is under way."""
        self._executor.shutdown(wait=False, cancel_futures=True)
