"""Two wrappers of an engine: one passes new weights on seldom, one draws samples ahead of learning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from transformers import PreTrainedModel

from partway.models.engine import Asked, Engine, SamplingSettings, Wrapped
from partway.sample import Request, Sample


class Seldom(Wrapped):
    """An engine that gets new weights every so many steps only, beginning with the first that are told."""

    def __init__(self, engine: Engine, steps: int) -> None:
        super().__init__(engine)
        self.steps = steps
        self._has_weights = False

    def update(self, weights: PreTrainedModel, version: int) -> None:
        """Hand the weights on if it is time."""
        if not self._has_weights or version % self.steps == 0:
            self.engine.update(weights, version)
        self._has_weights = True


class Ahead(Wrapped):
    """An engine that draws for the next `steps` steps in other threads, while the model learns.

    A request is made from the buffer as it is when it is sent. What comes back is judged by the buffer as it
    is when its step is made.
    """

    def __init__(self, engine: Engine, steps: int, asked: Callable[[int], Sequence[Asked]]) -> None:
        super().__init__(engine)
        self.steps = steps
        self.asked = asked
        # As many as steps can be under way, the present one included.
        self._executor = ThreadPoolExecutor(steps + 1, thread_name_prefix="exploring")
        self._under_way: dict[tuple[int, str], Future[list[list[Sample]]]] = {}
        self._sent = 0  # the last step whose requests were sent

    def update(self, weights: PreTrainedModel, version: int) -> None:
        """Hand the weights on, and send with them what has not been sent yet."""
        self.engine.update(weights, version)
        for step in range(max(version, self._sent) + 1, version + 1 + self.steps + 1):
            self._sent = step
            for requests, settings, seed in self.asked(step):
                if requests:
                    key = seed, requests[0].problem.id  # a step takes a problem once
                    drawing = self._executor.submit(self.engine.complete, requests, settings, seed)
                    self._under_way[key] = drawing

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Sample]]:
        """What was drawn for these problems of a step, as soon as all of it is there."""
        return self._under_way.pop((seed, requests[0].problem.id)).result() if requests else []

    def rest(self) -> None:
        """Wait for nothing that is under way."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        super().rest()

    def close(self) -> None:
        """Wait for nothing that is under way."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        super().close()
