"""What runs in a worker process: a zygote that never runs a program itself, and one child for each that does.

The zygote is handed a sheet of shared memory per program, which it never reads. It forks a child for each
and says how the child ended. Whatever a program does to its interpreter ends with its process.
"""

from __future__ import annotations

import _socket
import gc
import json
import math
import os
import select
import signal
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from partway.execution.isolation import confine_program, confine_worker
from partway.execution.namespace import fresh_namespace, settle_modules
from partway.execution.probe import try_everything
from partway.execution.recorder import FullRecord, PlainRecord, run_program
from partway.execution.sheets import Sheet
from partway.execution.wire import FrameReader, frame, to_json

HELLO, REPLY, UNUSABLE = b"H", b"R", b"U"
CHANNEL = 0
MAX_SHEETS = 64  # in one request
OUT_OF_MEMORY = 77  # exit status of a child that had no memory left to report
ENCODINGS = ("ascii", "latin-1", "utf-16", "utf-32", "utf-7", "utf-8-sig", "cp1252", "unicode-escape")
WARM_UP = ("answer", "x = [1, 2.5]", "for i in range(3):\n    x.append(f'{i}')", "y = {'a': (x, None)}")
_SIGNALS_OF_TIME = (signal.SIGPROF, signal.SIGXCPU)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Limits for each program on the sheets that come along; `plain` asks for the other recorder."""

    cpu_seconds: float = 1.0
    wall_seconds: float = 10.0
    memory_bytes: int = 256 << 20
    plain: bool = False


def main() -> None:
    """Serve requests from the channel until it closes."""
    protections = _settle() | _protections()
    _send(HELLO + to_json(protections).encode())
    channel = _socket.socket(fileno=CHANNEL)
    reader = FrameReader(limit=1 << 16)
    sheets: list[int] = []
    while True:
        data, messages, _, _ = channel.recvmsg(1 << 16, _socket.CMSG_SPACE(4 * MAX_SHEETS))
        if not data:
            return
        sheets += _descriptors(messages)
        for payload in reader.feed(data):
            request = json.loads(payload)
            if request is None:
                _send(REPLY + to_json(_probe()).encode())
            else:
                serve(RunRequest(**request), sheets)
                sheets = []


def _descriptors(messages: Sequence[tuple[int, int, bytes]]) -> list[int]:
    received = b"".join(data for _, kind, data in messages if kind == _socket.SCM_RIGHTS)
    return list(struct.unpack(f"={len(received) // 4}i", received))


def _settle() -> dict[str, str]:
    """Import what programs may need, get ready what every child needs, then close the door behind us."""
    for encoding in ENCODINGS:
        "".encode(encoding)
    "\N{EURO SIGN}ß".encode("ascii", "namereplace")  # loads the names of characters, as does the parser
    Counter().most_common(1)
    _warm_up()
    settle_modules()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)
    sys.path.clear()
    sys.meta_path.clear()
    gc.collect()
    gc.freeze()
    return confine_worker()


def _warm_up() -> None:
    """Run a program of our own: what Python prepares at first use is then prepared in every child."""
    for plain in (False, True):
        namespace = fresh_namespace()
        record = PlainRecord() if plain else FullRecord(namespace)
        reason = run_program(WARM_UP[1:], WARM_UP[0], namespace, record, lambda line: True, [])
        assert reason is None, f"a harmless program fails: {reason}"


def serve(request: RunRequest, sheets: Sequence[int]) -> None:
    """Run the program on every sheet, in order; a reply says how its process ended, None if as it should."""
    for sheet in sheets:
        try:
            ending = _run(request, sheet)
            if ending is not None and not ending.certain:
                ending = _run(request, sheet)  # somebody else may have killed it
        except OSError as error:
            _send(UNUSABLE + f"a worker cannot start a process: {error.strerror}".encode())
            return
        _send(REPLY + to_json(ending and [ending.kind, ending.message]).encode())
        os.close(sheet)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended; `certain` if running its program again would end the same way."""

    kind: str
    message: str
    certain: bool = False


def _run(request: RunRequest, sheet: int) -> Ending | None:
    """Fork a child for one program and see it to its end."""
    zygote = os.getpid()
    pid = os.fork()
    if pid == 0:
        _live(request, sheet, zygote)
    if _ends_in_time(pid, time.monotonic() + request.wall_seconds):
        return _ending(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), request)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return Ending("timeout", f"took longer than {request.wall_seconds:g} s", certain=True)


def _ends_in_time(pid: int, deadline: float) -> bool:
    """Wait for a child; end this process, and the child, when the trainer is gone."""
    poll = select.poll()
    poll.register(CHANNEL, 0)  # only its hang-up
    if not hasattr(os, "pidfd_open"):
        return _ends_in_time_without_notice(pid, deadline, poll)
    child = os.pidfd_open(pid)
    poll.register(child, select.POLLIN)
    events = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
    os.close(child)
    if any(descriptor == CHANNEL for descriptor, _ in events):
        _end_with(pid)
    return bool(events)


def _ends_in_time_without_notice(pid: int, deadline: float, poll: select.poll) -> bool:
    """As above where no descriptor stands for a process: look every millisecond."""
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return True
        if poll.poll(1):
            _end_with(pid)
    return False


def _end_with(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os._exit(0)


def _ending(code: int, request: RunRequest) -> Ending | None:
    if code == 0:
        return None
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
    status = 70
    keep: list[object] = []  # what the program made: were it destroyed here, its clean-up code would run here
    try:
        sheet = Sheet(descriptor)
        os.closerange(0, 256)
        _confine(request, zygote)
        signal.setitimer(signal.ITIMER_PROF, request.cpu_seconds)  # its signal ends this process
        answer_variable, *steps = sheet.program()
        reason = run_program(steps, answer_variable, _NAMESPACE, _RECORDS[request.plain], sheet.append, keep)
        sheet.finish(to_json(reason).encode())
        status = 0
    except MemoryError:
        status = OUT_OF_MEMORY
    finally:
        os._exit(status)


def _confine(request: RunRequest, zygote: int) -> dict[str, str]:
    return confine_program(request.memory_bytes, math.ceil(request.cpu_seconds) + 1, zygote)


def _send(payload: bytes) -> None:
    view = memoryview(frame(payload))
    while view:
        view = view[os.write(CHANNEL, view) :]


def _probe() -> dict[str, Any]:
    """Put up a child's walls and run against them: what is refused in fact, whatever was set up."""
    report, *survival = _said_by_a_child(lambda zygote: try_everything(1, lambda: _walls(zygote), zygote))
    result: dict[str, Any] = json.loads(report)
    result["refused"]["start a command"] = bool(survival)
    return result


def _protections() -> dict[str, str]:
    """What a child's walls would be."""
    (report,) = _said_by_a_child(lambda zygote: os.write(1, to_json(_walls(zygote)).encode()))
    result: dict[str, str] = json.loads(report)
    return result


def _walls(zygote: int) -> dict[str, str]:
    return _confine(RunRequest(), zygote)


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
