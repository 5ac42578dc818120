"""The pool of isolated workers, seen from this process: started on first use, gone when this process is.

Workers are separate programs started from a clean environment, never forks of this process. What they
run, and inside which walls, is `worker`; here their replies are checked and their deaths survived.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import json
import math
import os
import selectors
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from stepbox.channel import UNSCREENED, Refusal, SentSheet
from stepbox.process import START_SECONDS, WorkerProcess, unusable
from stepbox.results import Execution, Failure, read_failure, read_reply
from stepbox.screen import screened
from stepbox.wire import WireError

Program = tuple[str, ...]

MAX_WORKERS = 4
MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024  # the unit in which the kernel says it
PROGRAMS_PER_REQUEST = 16  # each keeps a descriptor open here and in the worker


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use; more ends it with a failure of kind timeout or memory."""

    cpu_seconds: float = 1.0
    wall_seconds: float = 10.0  # a backstop: programs cannot sleep, and load must not change verdicts
    memory_bytes: int = 256 << 20
    reply_bytes: int = 512 << 10  # the encoded states of one program
    program_bytes: int = 1 << 20  # the text of one program

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value <= 0:
                raise ValueError(f"{name} is {value}; expected a positive number")


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class BoxReport:
    """What stands around a worker here: the walls with their state, and what was refused when tried."""

    protections: Mapping[str, str]
    refused: Mapping[str, bool]


def run(
    programs: Sequence[Program],
    *,
    until: str = "",
    limits: Limits | None = None,
    second: bool = False,
    allow_weak: bool = False,
) -> list[Execution]:
    """Run programs, each a tuple of steps, in isolated workers; one execution per program, in order.

    A program ends after its last step, or after the first that binds the variable `until`. `second` asks for
    workers with another layout: other hash seeds and addresses, another recorder.

    Where the kernel would not stop a program that gets past the screen none is run, unless `allow_weak`
    accepts the risk: a program could read, change or delete your files and run commands as you.
    """
    return _SHARED.get(second).run(programs, until, limits or DEFAULT_LIMITS, allow_weak)


def steps(text: str) -> tuple[str, ...]:
    """The statements of a text, one step each; a SyntaxError if it is not Python."""
    return tuple(ast.unparse(node) for node in ast.parse(text).body)


def inspect() -> BoxReport:
    """Start a worker, if none runs yet, and let it try what it must not be able to do."""
    return _SHARED.get().inspect()


class _Pool:
    """The workers of one layout; one call at a time uses them all."""

    def __init__(self, second: bool = False) -> None:
        self.second = second
        self.lock = threading.Lock()
        self.workers: list[WorkerProcess] = []

    def run(
        self, programs: Sequence[Program], until: str, limits: Limits, allow_weak: bool
    ) -> list[Execution]:
        with self.undivided():
            return _Run(self, programs, until, limits, allow_weak).finish()

    def inspect(self) -> BoxReport:
        with self.undivided():
            worker = self.grow(1, allow_weak=True)[0]
            try:
                worker.send(None)
                reply = json.loads(worker.next_payload(time.monotonic() + START_SECONDS)[1:])
            except (OSError, EOFError, WireError) as error:
                raise unusable(f"it starts, but cannot be examined: {error}") from None
            return BoxReport(worker.protections | reply["protections"], reply["refused"])

    @contextlib.contextmanager
    def undivided(self) -> Iterator[None]:
        """The pool for one call alone; a call that breaks off leaves no worker with replies under way."""
        with self.lock:
            try:
                yield
            except BaseException:
                self.close()
                raise

    def grow(self, count: int, allow_weak: bool) -> list[WorkerProcess]:
        """At least `count` running workers."""
        known = len(self.workers)
        while len(self.workers) < count:
            self.workers.append(WorkerProcess(hash_seed=int(self.second)))
        for worker in self.workers[known:]:  # all are under way by now: they start side by side
            worker.greet()
        for worker in self.workers:
            worker.check_walls(allow_weak)
        return self.workers

    def drop(self, worker: WorkerProcess) -> None:
        self.workers.remove(worker)
        worker.close()

    def close(self, patience: float = 0.0) -> None:
        while self.workers:
            self.workers.pop().close(patience)


@dataclass(slots=True)
class _Job:
    """Programs under way in one worker, by number, in the order in which they are answered."""

    worker: WorkerProcess
    numbers: deque[int]
    sheets: deque[SentSheet]
    deadline: float


class _Run:
    """One call: what still waits, what is under way, what has come back."""

    def __init__(
        self, pool: _Pool, programs: Sequence[Program], until: str, limits: Limits, allow_weak: bool
    ) -> None:
        self.pool = pool
        self.programs = programs
        self.until = until
        self.limits = limits
        self.allow_weak = allow_weak
        self.admitted: dict[int, tuple[Program, Refusal]] = {}
        self.results: dict[int, Execution] = {}
        self.deaths: Counter[int] = Counter()  # of workers, by the program that they died with
        self.jobs: dict[WorkerProcess, _Job] = {}
        self.waiting: deque[deque[int]] = deque()

    def finish(self) -> list[Execution]:
        self.waiting.extend(self.portions())
        try:
            with selectors.DefaultSelector() as selector:
                while self.waiting or self.jobs:
                    self.assign(selector)
                    # Not for ever: a worker that will never answer shows by its deadline only.
                    ready = {key.data for key, _ in selector.select(timeout=1.0)}
                    for job in list(self.jobs.values()):
                        self.attend(job, job.worker in ready, selector)
        finally:
            for job in self.jobs.values():
                _throw_away(job.sheets)
        return [self.results[number] for number in range(len(self.programs))]

    def portions(self) -> Iterator[deque[int]]:
        """Numbers of the programs to send, in requests; those that need no worker are answered here."""
        portion: deque[int] = deque()
        for number, program in enumerate(self.programs):
            length = sum(map(len, program))
            if not program:
                self.results[number] = Execution(())
            elif length > self.limits.program_bytes:
                message = f"a text of {length} characters, the limit is {self.limits.program_bytes}"
                self.results[number] = Execution((), Failure("memory", message, 0))
            elif "\0" in "".join(program):
                self.results[number] = Execution((), Failure("error", "SyntaxError: a null character", 0))
            elif self.admit(number):
                portion.append(number)
            if len(portion) >= PROGRAMS_PER_REQUEST:
                yield portion
                portion = deque()
        if portion:
            yield portion

    def admit(self, number: int) -> bool:
        """Whether any step of the program may run; what is traced twice is screened twice, the second time
        inside the walls."""
        program = self.programs[number]
        steps, (kind, message) = (program, UNSCREENED) if self.pool.second else screened(program)
        if not steps:
            self.results[number] = Execution((), read_failure([kind, message], 0))
        self.admitted[number] = steps, (kind, message)
        return bool(steps)

    def assign(self, selector: selectors.BaseSelector) -> None:
        """Give every idle worker something to do."""
        wanted = min(cores(), MAX_WORKERS, len(self.jobs) + len(self.waiting))
        running = self.pool.grow(wanted, self.allow_weak)
        idle = [worker for worker in running if worker not in self.jobs]
        for worker in idle[: len(self.waiting)]:
            numbers = self.waiting.popleft()
            sheets = deque(self.sheet(number) for number in numbers)
            self.jobs[worker] = _Job(worker, numbers, sheets, self.later())
            selector.register(worker.socket, selectors.EVENT_READ, worker)
            with contextlib.suppress(OSError):  # a dead worker shows when its reply is awaited
                worker.send(self.request(), [sheet.descriptor for sheet in sheets])

    def sheet(self, number: int) -> SentSheet:
        steps, refusal = self.admitted[number]
        return SentSheet.of(steps, self.until, self.limits.reply_bytes, refusal)

    def request(self) -> dict[str, Any]:
        return {
            "cpu_seconds": self.limits.cpu_seconds,
            "cpu_limit": math.ceil(self.limits.cpu_seconds) + 1,
            "wall_seconds": self.limits.wall_seconds,
            "memory_bytes": self.limits.memory_bytes,
            "plain": self.pool.second,
        }

    def later(self) -> float:
        """When a worker that says nothing is given up: it would have stopped any program, tried twice."""
        return time.monotonic() + 2 * self.limits.wall_seconds + START_SECONDS

    def attend(self, job: _Job, ready: bool, selector: selectors.BaseSelector) -> None:
        """Take a worker's replies, or notice that it will not send any."""
        try:
            if ready:
                job.worker.receive()
                job.deadline = self.later()
            elif time.monotonic() > job.deadline:
                raise EOFError("it does not answer")
            while job.worker.payloads and job.numbers:
                self.accept(job, job.worker.payloads.popleft())
        except (OSError, EOFError, WireError):
            selector.unregister(job.worker.socket)
            self.lose(job)
            return
        if not job.numbers:
            selector.unregister(job.worker.socket)
            del self.jobs[job.worker]

    def accept(self, job: _Job, payload: bytes) -> None:
        if payload[:1] == b"U":  # no process could be started
            raise unusable(payload[1:].decode(errors="replace"))
        number, sheet = job.numbers.popleft(), job.sheets.popleft()
        held, _, ending = payload[1:].partition(b" ")
        found = read_reply(sheet.record(), ending, len(self.programs[number]), self.until)
        self.results[number] = replace(found, peak_bytes=MAXRSS_BYTES * int(held if held.isdigit() else 0))
        sheet.throw_away()

    def lose(self, job: _Job) -> None:
        """A worker is gone: its programs are tried again, except one that was there both times."""
        del self.jobs[job.worker]
        _throw_away(job.sheets)
        self.pool.drop(job.worker)
        # Replies come in order, so the first program without one is what it died with.
        first = job.numbers[0]
        self.deaths[first] += 1
        if self.deaths[first] == 2:
            failure = Failure("error", "worker was killed from outside, twice", 0, is_own=False)
            self.results[first] = Execution((), failure)
            job.numbers.popleft()
        if job.numbers:
            self.waiting.appendleft(job.numbers)


def _throw_away(sheets: deque[SentSheet]) -> None:
    while sheets:
        sheets.popleft().throw_away()


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Shared:
    """The pools of this process, one per layout, made when first asked for and not inherited by a fork."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pools: dict[bool, _Pool] = {}

    def get(self, second: bool = False) -> _Pool:
        with self.lock:
            if second not in self.pools:
                self.pools[second] = _Pool(second)
                atexit.register(self.pools[second].close, patience=2.0)
            return self.pools[second]

    def forget(self) -> None:
        """In a forked child: leave the parent's workers to the parent."""
        self.lock = threading.Lock()  # the old one may be held by a thread that was not forked along
        for pool in self.pools.values():
            atexit.unregister(pool.close)
            for worker in pool.workers:
                worker.abandon()
        self.pools = {}


_SHARED = _Shared()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_SHARED.forget)
