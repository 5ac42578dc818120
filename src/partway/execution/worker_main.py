"""What runs in a worker process: a zygote that never runs a program itself, and its children that do.

The zygote gets a batch, forks a child for it and passes on the child's replies. A child that dies or
takes too long costs the one program it was running; the next child goes on behind it.
"""

from __future__ import annotations

import _socket
import contextlib
import gc
import importlib
import json
import math
import os
import resource
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from partway.execution.isolation import confine_program, confine_worker
from partway.execution.recorder import Journal, prepare, run_program
from partway.execution.wire import FrameReader, WireError, frame, to_json

HELLO, REPLY, UNUSABLE = b"H", b"R", b"U"
CHANNEL = 0
OUT_OF_MEMORY = 77  # exit status of a child that had no memory left to report
RETIRE_ABOVE = 96 << 20  # bytes a child may have held at its peak and still take the next program
_SIGNALS_OF_TIME = (signal.SIGPROF, signal.SIGXCPU)


@dataclass(frozen=True, slots=True)
class Batch:
    """A request: programs as texts of steps, and the limits for each."""

    programs: list[list[str]]
    answer_variable: str
    cpu_seconds: float
    wall_seconds: float
    memory_bytes: int
    reply_bytes: int


def main() -> None:
    """Serve batches from the channel until it closes."""
    protections = _settle()
    _send(HELLO + to_json(protections).encode())
    reader = FrameReader(limit=1 << 30)
    while data := os.read(CHANNEL, 1 << 16):
        for payload in reader.feed(data):
            request = json.loads(payload)
            if request is None:
                _send(REPLY + to_json(_probe()).encode())
            else:
                serve(Batch(**request))


def _settle() -> dict[str, str]:
    """Import what programs may need, then close the door behind us."""
    importlib.import_module("unicodedata")  # the parser's, for names beyond ASCII
    for encoding in ("ascii", "latin-1", "utf-16", "utf-32", "unicode-escape", "raw-unicode-escape"):
        "".encode(encoding)
    Counter().most_common(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    sys.path.clear()
    sys.meta_path.clear()
    gc.collect()
    gc.freeze()
    return confine_worker()


def serve(batch: Batch) -> None:
    """Answer every program of the batch, in order."""
    with contextlib.closing(Journal(batch.reply_bytes)) as journal:
        done = deaths = 0
        while done < len(batch.programs):
            try:
                child = Child.start(batch, done, journal)
            except OSError as error:
                _send(UNUSABLE + f"a worker cannot start a process: {error.strerror}".encode())
                return
            answered = 0
            for replies in child.replies(len(batch.programs) - done):
                _send(*(REPLY + reply for reply in replies))
                answered += len(replies)
            done += answered
            ending = child.ending(alone=not answered)
            if done == len(batch.programs) or (ending.kind == "exit" and answered):
                deaths = 0  # finished, or retired before the next program
                continue
            deaths = 1 if answered else deaths + 1
            if ending.certain or deaths == 2:
                _send(REPLY + _salvage(journal, done, ending))
                done += 1
                deaths = 0


def _salvage(journal: Journal, program: int, ending: Ending) -> bytes:
    """A reply for a program whose process is gone: the steps it had finished, and why it ended."""
    lines = journal.lines(program)
    complete = lines[: lines.rfind(b"\n") + 1]
    kind = "error" if ending.kind == "exit" else ending.kind
    return complete + to_json([kind, ending.message, complete.count(b"\n")]).encode()


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended; `certain` if running its last program again would end the same way."""

    kind: str
    message: str
    certain: bool = False


@dataclass(slots=True)
class Child:
    """A forked process that runs the programs from one on, seen from the zygote."""

    pid: int
    pipe: int
    batch: Batch
    overdue: bool = False

    @classmethod
    def start(cls, batch: Batch, start: int, journal: Journal) -> Child:
        journal.begin(-1)
        receiving, sending = os.pipe()
        zygote = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            os.close(receiving)
            os.close(sending)
            raise
        if pid == 0:
            _run_and_exit(batch, start, journal, sending, zygote)
        os.close(sending)
        return cls(pid, receiving, batch)

    def replies(self, count: int) -> Iterator[list[bytes]]:
        """At most `count` replies, in lots, until the child ends, is late or sends nonsense."""
        reader = FrameReader(limit=self.batch.reply_bytes + 4096)
        deadline = time.monotonic() + self.batch.wall_seconds
        while count:
            data = self.read_before(deadline)
            if not data:
                return
            try:
                replies = list(islice(reader.feed(data), count))
            except WireError:
                os.kill(self.pid, signal.SIGSYS)
                return
            if replies:
                yield replies
                count -= len(replies)
                deadline = time.monotonic() + self.batch.wall_seconds

    def read_before(self, deadline: float) -> bytes:
        """What the child wrote; nothing at its end or when time is up. Ends this process with its parent."""
        poll = select.poll()
        poll.register(self.pipe, select.POLLIN)
        poll.register(CHANNEL, 0)  # only its hang-up
        events = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if any(descriptor == CHANNEL for descriptor, _ in events):
            os.kill(self.pid, signal.SIGKILL)
            os._exit(0)
        self.overdue = not events
        return os.read(self.pipe, 1 << 16) if events else b""

    def ending(self, alone: bool) -> Ending:
        """Make sure the child is gone, and say how it went."""
        os.close(self.pipe)
        code = os.waitstatus_to_exitcode(self.wait())
        if self.overdue:
            return Ending("timeout", f"took longer than {self.batch.wall_seconds:g} s", certain=True)
        if -code in _SIGNALS_OF_TIME:
            spent = f"took more than {self.batch.cpu_seconds:g} s of processor time"
            return Ending("timeout", spent, certain=True)
        if code == OUT_OF_MEMORY:
            return Ending("memory", "MemoryError", certain=alone)
        if code == 0:
            return Ending("exit", "worker ended without a reply")
        if code > 0:
            return Ending("error", f"worker ended with status {code}")
        kind = "memory" if -code == signal.SIGKILL else "error"
        return Ending(kind, f"worker was killed by {_signal_name(-code)}, twice")

    def wait(self) -> int:
        """The status of a child that has closed its pipe, or is made to go."""
        patience = time.monotonic() + 1.0
        if self.overdue:
            os.kill(self.pid, signal.SIGKILL)
        while True:
            pid, status = os.waitpid(self.pid, 0 if self.overdue else os.WNOHANG)
            if pid:
                return status
            if time.monotonic() > patience:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.0002)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _run_and_exit(batch: Batch, start: int, journal: Journal, pipe: int, zygote: int) -> None:
    """The child's whole life."""
    status = 70
    try:
        _keep_only(pipe)
        _confine(batch, start, zygote)
        _run_from(batch, start, journal, pipe)
        status = 0
    except MemoryError:
        status = OUT_OF_MEMORY
    finally:
        os._exit(status)


def _keep_only(pipe: int) -> None:
    os.dup2(1, CHANNEL)  # the null device
    os.closerange(3, pipe)
    os.closerange(pipe + 1, 64)


def _confine(batch: Batch, start: int, zygote: int) -> dict[str, str]:
    cpu_seconds = math.ceil(batch.cpu_seconds) * (len(batch.programs) - start) + 1
    return confine_program(batch.memory_bytes, cpu_seconds, zygote)


def _run_from(batch: Batch, start: int, journal: Journal, pipe: int) -> None:
    """Run programs until the batch ends or this process is no clean place for the next one."""
    keep: list[object] = []
    for number in range(start, len(batch.programs)):
        signal.setitimer(signal.ITIMER_PROF, batch.cpu_seconds)  # its signal ends this process
        journal.begin(number)
        steps = [prepare(text) for text in batch.programs[number]]
        solitary = any(step.screened.solitary for step in steps)
        first = number == start
        if solitary and not first:
            return
        reason = run_program(steps, batch.answer_variable, journal, keep)
        signal.setitimer(signal.ITIMER_PROF, 0)
        full = reason is not None and reason[0] == "memory"
        if full and not first:
            return  # others used this memory before: once more in a process of its own
        lines = journal.lines(number)
        failure = None if reason is None else [*reason, lines.count(b"\n")]
        _write(pipe, frame(lines + to_json(failure).encode()))
        if solitary or full or _peak_memory() > RETIRE_ABOVE:
            return
        gc.freeze()  # nothing this program left behind is ever finalised in another's time


def _peak_memory() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _send(*payloads: bytes) -> None:
    _write(CHANNEL, b"".join(map(frame, payloads)))


def _probe() -> dict[str, Any]:
    """Put up a child's walls and run against them: what is refused in fact, whatever was set up."""
    receiving, sending = os.pipe()
    zygote = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            _keep_only(sending)
            _try_everything(sending, zygote)
        finally:
            os._exit(0)
    os.close(sending)
    report, *survival = b"".join(iter(lambda: os.read(receiving, 1 << 16), b"")).splitlines()
    os.close(receiving)
    os.waitpid(pid, 0)
    result: dict[str, Any] = json.loads(report)
    result["refused"]["start a command"] = bool(survival)
    return result


def _try_everything(pipe: int, zygote: int) -> None:
    """Write what is refused; a second line follows if this process cannot even become another."""
    protections = _confine(Batch([[]], "answer", 1.0, 1.0, 256 << 20, 0), 0, zygote)
    attempts: dict[str, Callable[[], object]] = {
        "read a file": lambda: os.close(os.open("/", os.O_RDONLY)),
        "write a file": lambda: os.close(os.open(os.devnull, os.O_WRONLY)),
        "open a socket": lambda: _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM).close(),
        "start a process": lambda: os.fork() or os._exit(0),
        "signal a process": lambda: os.kill(zygote, 0),
    }
    refused = {name: _is_refused(attempt) for name, attempt in attempts.items()}
    _write(pipe, to_json({"protections": protections, "refused": refused}).encode() + b"\n")
    if _is_refused(lambda: os.execv("/bin/sh", ["sh", "-c", ":"])):
        _write(pipe, b"still here")


def _is_refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return True
    return False
