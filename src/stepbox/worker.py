"""What runs in a worker process: a zygote that never runs a program itself, and one child for each that does.

The zygote is handed a sheet of shared memory per program, which it never reads. It forks a child for each
and says how the child ended. Whatever a program does to its interpreter ends with its process.
"""

from __future__ import annotations

import _socket
import gc
import json
import os
import select
import signal
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import _exit, close, closerange, fork, wait4
from select import POLLIN
from signal import ITIMER_PROF, setitimer
from types import ModuleType
from typing import Any

from stepbox.channel import NOTHING_REFUSED, UNSCREENED, FrameReader, SentSheet, Sheet, frame
from stepbox.program import (
    FullRecord,
    PlainRecord,
    prepare,
    prepare_unscreened,
    run_program,
)
from stepbox.walls import confine_program, confine_worker, try_everything, warm_up_walls
from stepbox.wire import to_json
from stepbox.world import fresh_namespace, settle_modules

HELLO, REPLY, UNUSABLE = b"H", b"R", b"U"
CHANNEL = 0
MAX_SHEETS = 64  # in one request
OUT_OF_MEMORY = 77  # exit status of a child that had no memory left to report
ENCODINGS = ("ascii", "latin-1", "utf-16", "utf-32", "utf-7", "utf-8-sig", "cp1252", "unicode-escape")
WARM_UP_ROUNDS = 40
WARM_UP = ("n = 2", "x = [1, 2.5]", "for i in range(3):\n    x.append(f'{n + i}')", "y = {'a': (x, None)}")
pidfd_open = getattr(os, "pidfd_open", None)  # on Linux
_SIGNALS_OF_TIME = (signal.SIGPROF, signal.SIGXCPU)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Limits for each program on the sheets that come along; `plain` asks for the other recorder."""

    cpu_seconds: float = 1.0
    wall_seconds: float = 10.0
    cpu_limit: int = 2  # whole seconds, as the kernel counts them: for a program that stops its timer
    memory_bytes: int = 256 << 20
    plain: bool = False


Life = Callable[[RunRequest, int, int], None]  # of a child, given its sheet and its parent; it never returns


def main() -> None:
    """Serve requests from the channel until it closes."""
    _settle()
    close_door()
    for request, sheets in requests():
        if request is None:
            send(REPLY + to_json(_probe()).encode())
        else:
            serve(RunRequest(**request), sheets)


def requests() -> Iterator[tuple[Any, list[int]]]:
    """What the channel brings, each request with the descriptors that came along."""
    channel = _socket.socket(fileno=CHANNEL)
    reader = FrameReader(limit=1 << 16)
    descriptors: list[int] = []
    while True:
        data, messages, _, _ = channel.recvmsg(1 << 16, _socket.CMSG_SPACE(4 * MAX_SHEETS))
        if not data:
            return
        descriptors += _descriptors(messages)
        for payload in reader.feed(data):
            yield json.loads(payload), descriptors
            descriptors = []


def _descriptors(messages: Sequence[tuple[int, int, bytes]]) -> list[int]:
    received = b"".join(data for _, kind, data in messages if kind == _socket.SCM_RIGHTS)
    return list(struct.unpack(f"={len(received) // 4}i", received))


def _settle() -> None:
    """Import what programs may need and get ready what every child needs."""
    for encoding in ENCODINGS:  # later, no file can be opened to load them from
        "".encode(encoding)
    "\N{EURO SIGN}ß".encode("ascii", "namereplace")  # loads the names of characters, as does the parser
    Counter().most_common(1)
    _warm_up()
    settle_modules()


def close_door() -> None:
    """Put up the walls, after which no file can be opened, and say which stand."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)
    # Where `dataclass` looks for the names of a class's module; ours are not for programs.
    sys.modules["__main__"] = ModuleType("__main__")
    sys.path.clear()
    sys.meta_path.clear()
    # What a collector looks at it writes to: a child would copy all of it.
    gc.collect()
    gc.freeze()
    send(HELLO + to_json(confine_worker() | _protections()).encode())


def _warm_up() -> None:
    """Do what children do until Python has prepared all that it prepares for code in use.

    A child that would have to prepare it writes to memory, and each page written to is copied.
    """
    for _ in range(WARM_UP_ROUNDS):
        for refusal, plain in ((NOTHING_REFUSED, False), (UNSCREENED, True)):
            sheet = SentSheet.of(WARM_UP, "answer", 1 << 12, refusal)
            namespace = fresh_namespace()
            record = PlainRecord() if plain else FullRecord(namespace)
            _trace(Sheet(sheet.descriptor), namespace, record, [])
            assert sheet.record().endswith(b"\nnull"), f"a harmless program fails: {sheet.record()!r}"
            sheet.throw_away()
        warm_up_walls()


def serve(request: RunRequest, sheets: Sequence[int], live: Life | None = None) -> None:
    """Run the program on every sheet, in order; a reply says how much its process held at most, in the units
    of `ru_maxrss`, and how it ended, None if as it should."""
    live = live or _live
    zygote = os.getpid()
    for sheet in sheets:
        try:
            ending, held = _run(request, sheet, zygote, live)
            if ending is not None and not ending.certain:
                ending, held = _run(request, sheet, zygote, live)  # somebody else may have killed it
        except OSError as error:
            send(UNUSABLE + f"a worker cannot start a process: {error.strerror}".encode())
            return
        told = b"null" if ending is None else to_json([ending.kind, ending.message]).encode()
        send(REPLY + b"%d " % held + told)
        close(sheet)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended; `certain` if running its program again would end the same way."""

    kind: str
    message: str
    certain: bool = False


def _run(request: RunRequest, sheet: int, zygote: int, live: Life) -> tuple[Ending | None, int]:
    """Fork a child for one program and see it to its end; with how much memory it held at most.

    Little is done here: after a fork this process, too, copies each page that it writes to.
    """
    pid = fork()
    if pid == 0:
        live(request, sheet, zygote)
    if not _ends_in_time(pid, request.wall_seconds):
        os.kill(pid, signal.SIGKILL)
        late = Ending("timeout", f"took longer than {request.wall_seconds:g} s", certain=True)
        return late, wait4(pid, 0)[2].ru_maxrss
    _, status, used = wait4(pid, 0)
    ending = None if status == 0 else _ending(os.waitstatus_to_exitcode(status), request)
    return ending, used.ru_maxrss


_poll = select.poll()
_poll.register(CHANNEL, 0)  # only its hang-up


def _ends_in_time(pid: int, seconds: float) -> bool:
    """Wait for a child; end this process, and the child, when the caller is gone."""
    if pidfd_open is None:
        return _ends_in_time_without_notice(pid, time.monotonic() + seconds)
    child = pidfd_open(pid)
    _poll.register(child, POLLIN)
    events = _poll.poll(seconds * 1000)
    _poll.unregister(child)
    close(child)
    for descriptor, _ in events:
        if descriptor == CHANNEL:
            _end_with(pid)
    return bool(events)


def _ends_in_time_without_notice(pid: int, deadline: float) -> bool:
    """As above where no descriptor stands for a process: look every millisecond."""
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return True
        if _poll.poll(1):
            _end_with(pid)
    return False


def _end_with(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os._exit(0)


def _ending(code: int, request: RunRequest) -> Ending:
    if -code in _SIGNALS_OF_TIME:
        return Ending("timeout", f"took more than {request.cpu_seconds:g} s of processor time", certain=True)
    if code == OUT_OF_MEMORY:
        return Ending("memory", "MemoryError", certain=True)
    if code > 0:
        return Ending("error", f"worker ended with status {code}")
    kind = "memory" if -code == signal.SIGKILL else "error"
    return Ending(kind, f"worker was killed by {_signal_name(-code)}, twice")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_NAMESPACE = fresh_namespace()  # every child has its own copy, as it has of all memory
_RECORDS = (FullRecord(_NAMESPACE), PlainRecord())


def _live(request: RunRequest, descriptor: int, zygote: int) -> None:
    """The child's whole life."""
    status = 70  # unless the lines below come to their end
    keep: list[object] = []  # what the program made: were it destroyed here, its clean-up code would run here
    try:
        sheet = Sheet(descriptor)
        closerange(0, 256)  # the sheet stays mapped
        # When garbage is collected hangs on all that was ever allocated, in the zygote too; clean-up code of
        # the program would run at another step each time.
        gc.disable()
        confine_program(request.memory_bytes, request.cpu_limit, zygote)
        setitimer(ITIMER_PROF, request.cpu_seconds)  # its signal ends this process
        _trace(sheet, _NAMESPACE, _RECORDS[request.plain], keep)
        status = 0
    except MemoryError:
        status = OUT_OF_MEMORY
    finally:
        _exit(status)


def _trace(
    sheet: Sheet, namespace: dict[str, Any], record: FullRecord | PlainRecord, keep: list[object]
) -> None:
    """Run the program on the sheet and write on it what became of it."""
    until, kind, message, *texts = sheet.program()
    # All of them first: once a step has run, nothing in this process can be relied on.
    steps = prepare_unscreened(texts) if kind == UNSCREENED[0] else [prepare(text) for text in texts]
    if message:
        steps.append((kind, message))
    reason = run_program(steps, until, namespace, record, sheet.append, keep)
    sheet.finish(b"null" if reason is None else to_json(reason).encode())


def send(payload: bytes) -> None:
    """Say something to the caller."""
    view = memoryview(frame(payload))
    while view:
        view = view[os.write(CHANNEL, view) :]


def _probe() -> dict[str, Any]:
    """Put up a child's walls and run against them: what is refused in fact, whatever was set up."""
    report, *survival = _said_by_a_child(lambda zygote: try_everything(_walls(zygote), zygote))
    result: dict[str, Any] = json.loads(report)
    result["refused"]["start a command"] = bool(survival)
    return result


def _protections() -> dict[str, str]:
    """What a child's walls would be."""
    (report,) = _said_by_a_child(lambda zygote: os.write(1, to_json(_walls(zygote)).encode()))
    result: dict[str, str] = json.loads(report)
    return result


def _walls(zygote: int) -> dict[str, str]:
    usual = RunRequest()
    return confine_program(usual.memory_bytes, usual.cpu_limit, zygote)


def _said_by_a_child(task: Callable[[int], object]) -> list[bytes]:
    """The lines that a child writes to descriptor 1, which is all it has."""
    receiving, sending = os.pipe()
    zygote = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(sending, 1)
            os.closerange(2, 256)
            os.close(CHANNEL)
            task(zygote)
        finally:
            os._exit(0)
    os.close(sending)
    lines = b"".join(iter(lambda: os.read(receiving, 1 << 16), b"")).splitlines()
    os.close(receiving)
    os.waitpid(pid, 0)
    return lines
