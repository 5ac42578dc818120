"""Ctrl-C and SIGTERM end a command at once, but not while it does something that must be whole."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType

INTERRUPTED = 128 + signal.SIGINT
HAS_TIMER = hasattr(signal, "setitimer")  # not on Windows, where a Ctrl-C does not wait
SECONDS_BETWEEN_TRIES = 0.05
SHOW_CURSOR = "\x1b[?25h"  # a bar may have hidden it

_waits = 0  # how many `interruptions_wait` are entered
_received: int = signal.SIGINT  # what a SIGALRM tries again


@contextlib.contextmanager
def interruptions_wait() -> Iterator[None]:
    """Hold back what comes inside, such as while a display or a process is being started or ended."""
    global _waits
    _waits += 1
    try:
        yield
    finally:
        _waits -= 1


@contextlib.contextmanager
def interruptions_handled() -> Iterator[None]:
    """Handle both as this module says, for the length of a command."""
    numbers = (signal.SIGINT, signal.SIGTERM, *((signal.SIGALRM,) if HAS_TIMER else ()))
    previous = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        if HAS_TIMER:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in previous.items():
            signal.signal(number, handler)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt at SIGINT, SystemExit at SIGTERM, and at SIGALRM what had to wait.

    Inside an import, where libraries swallow exceptions or die of them, the process just ends.
    """
    global _received
    if number in (signal.SIGINT, signal.SIGTERM):
        _received = number
    if _waits and HAS_TIMER:
        signal.setitimer(signal.ITIMER_REAL, SECONDS_BETWEEN_TRIES)
    elif _importing(frame):
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            shown = SHOW_CURSOR if sys.stderr.isatty() else ""
            told = f"{shown}\npartway: interrupted\n" if _received == signal.SIGINT else shown
            os.write(2, told.encode())  # not `print`: whoever was interrupted may hold its lock
        os._exit(128 + _received)
    elif _received == signal.SIGINT:
        raise KeyboardInterrupt
    else:  # processes and files that were meant for a while are removed
        sys.exit(128 + _received)


def _importing(frame: FrameType | None) -> bool:
    # Python's own code for imports is built in under this name, whatever is being imported.
    while frame is not None and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None
