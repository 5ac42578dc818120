"""Where the samples of a step come from: the engine, servers that work ahead, or a recorded run.

Which prefixes are continued is Algorithm 2, in `sampling`; what becomes of the samples is the trainer's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

from accelerate import Accelerator

from partway.errors import ConfigError, EngineError
from partway.models.engine import Draw, Engine, Request
from partway.models.local_engine import LocalEngine
from partway.models.servers.server_engine import ServerEngine
from partway.problem import Problem
from partway.sampling import Drawn, guided_requests
from partway.solution import Solution
from partway.training.config import SelfSamplingConfig
from partway.training.distributed import gathered
from partway.training.replay import Recording
from partway.training.shared_buffers import Buffers


def step_seed(seed: int, step: int, purpose: str) -> int:
    """The seed of one purpose in one step: none of them shares its random numbers with another."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{step}/{purpose}".encode(), digest_size=7).digest())


class Exploration:
    """Samples of the problems of a step; steps come in their order.

    `has_room` says whether a prefix can be continued. `sampling_mode` readies the model for sampling and, if
    `is_due`, gives the engine its weights. `recording` is learned from in place of sampling.
    """

    def __init__(
        self,
        engine: Engine,
        args: SelfSamplingConfig,
        buffers: Buffers,
        *,
        has_room: Callable[[Problem, Solution], bool],
        sampling_mode: Callable[..., AbstractContextManager[None]],
        recording: Recording | None,
    ) -> None:
        self.engine = engine
        self.args = args
        self.buffers = buffers
        self.recording = recording
        self.ahead = self._ahead() if args.explore_ahead and recording is None else None
        self._has_room = has_room
        self._sampling_mode = sampling_mode
        self._has_synced = False

    def drawn(self, step: int, problems: Sequence[Problem]) -> Drawn:
        """Samples of the problems: recorded, drawn ahead, or drawn now."""
        if self.recording is not None:
            return self.recording.drawn(step, problems)
        if self.ahead is not None:
            return self.ahead.drawn(step, problems)
        with self._sampling_mode(is_due=self._is_sync_due(step)):
            requests = self._requests(step, problems)
            draws = self.engine.complete(requests, self.args.sampling, self._seed(step))
        return list(zip(requests, draws, strict=True))

    def send_ahead(
        self, step: int, last_step: int, parts: Callable[[int], Sequence[Sequence[Problem]]]
    ) -> None:
        """Let servers work on this step and the next ones, with the weights there are now.

        `parts` are the problems that this process explores in a step, as they will be asked for.
        """
        assert self.ahead is not None, "only what works ahead is sent ahead"
        with self._sampling_mode(is_due=self._is_sync_due(step)):
            pass  # only to hand the weights over
        last = min(step + self.args.explore_ahead, last_step)
        for later in range(max(step, self.ahead.last_step + 1), last + 1):
            if later > self.args.sampling_start_step:
                requests = [self._requests(later, part) for part in parts(later)]
                self.ahead.send(later, requests, self._seed(later))

    @contextmanager
    def in_good_order(self, accelerator: Accelerator, saved: Callable[[], str]) -> Iterator[None]:
        """If servers are gone for good, all processes save what they have and stop.

        `saved` saves it, and says how to go on.
        """
        failure: EngineError | None = None
        try:
            yield
        except EngineError as error:
            failure = error
        reason = None if failure is None else str(failure)
        # Saving takes all processes, also those whose own requests were answered.
        are_shared = isinstance(self.engine, ServerEngine)
        for said in gathered(accelerator, reason) if are_shared else [reason]:
            if said is not None:
                raise EngineError(f"{said}; {saved()}") from failure

    def end(self, *, is_complete: bool) -> None:
        """Wait for nothing that is under way, and remove what servers needed."""
        if self.ahead is not None:
            self.ahead.give_up()
        if isinstance(self.engine, ServerEngine):
            (self.engine.rest if is_complete else self.engine.close)()

    def _requests(self, step: int, problems: Sequence[Problem]) -> list[Request]:
        return guided_requests(
            problems,
            self.buffers,
            self.args.num_generations,
            self._seed(step),
            self._has_room,
            self.args.num_generations_unsolved,
            guided=self.args.partial_solutions != "targets",
        )

    def _seed(self, step: int) -> int:
        return step_seed(self.args.seed, step, "explore")

    def _is_sync_due(self, step: int) -> bool:
        """Whether this step draws with new weights; the first one of a life always does."""
        was_first, self._has_synced = not self._has_synced, True
        return was_first or (step - 1) % self.args.weight_sync_steps == 0

    def _ahead(self) -> Ahead:
        if isinstance(self.engine, LocalEngine):
            raise ConfigError(
                f"explore_ahead is {self.args.explore_ahead}, but the model that learns draws the samples "
                "itself; set engine to the addresses of servers, or explore_ahead to 0"
            )
        if self.args.loss.advantages is not None:
            raise ConfigError(
                f"explore_ahead is {self.args.explore_ahead}, but {self.args.objective} learns from samples "
                "of the weights it changes; set explore_ahead to 0"
            )
        return Ahead(
            lambda requests, seed: self.engine.complete(requests, self.args.sampling, seed),
            self.args.explore_ahead,
        )


class Ahead:
    """Requests of later steps under way; `complete` answers requests, given a seed, in another thread.

    A request is made from the buffer as it is when it is sent. What comes back is judged by the buffer as it
    is when its step is made.
    """

    def __init__(self, complete: Callable[[Sequence[Request], int], list[list[Draw]]], steps: int) -> None:
        self._complete = complete
        # As many as steps can be under way, the present one included.
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
