"""Ctrl-C ends a command at once, and never where it would leave something half started."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType

INTERRUPTED = 130
SECONDS_BETWEEN_TRIES = 0.05
SHOW_CURSOR = "\x1b[?25h"

_waits = 0  # how many `interruptions_wait` are entered


@contextlib.contextmanager
def interruptions_wait() -> Iterator[None]:
    """Hold back a Ctrl-C that comes inside, such as while a display or a process is being started."""
    global _waits
    _waits += 1
    try:
        yield
    finally:
        _waits -= 1


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle SIGINT, and the SIGALRM of another try, by raising KeyboardInterrupt.

    Inside an import, where libraries swallow exceptions or die of them, the process just ends.
    """
    if _waits:
        signal.setitimer(signal.ITIMER_REAL, SECONDS_BETWEEN_TRIES)
    elif _importing(frame):
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            shown = SHOW_CURSOR if sys.stderr.isatty() else ""
            os.write(2, f"{shown}\npartway: interrupted\n".encode())
        os._exit(INTERRUPTED)
    else:
        raise KeyboardInterrupt


def _importing(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None
