"""Ctrl-C, raised only where it leaves nothing half done."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SECONDS_BETWEEN_TRIES = 0.05
_waits = 0  # how many `interruptions_wait` are entered


@contextmanager
def interruptions_wait() -> Iterator[None]:
    """Hold back a Ctrl-C that comes inside, such as while a display or a process is being started."""
    global _waits
    _waits += 1
    try:
        yield
    finally:
        _waits -= 1


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle SIGINT, and the SIGALRM of another try: raise KeyboardInterrupt as soon as nothing waits.

    Imports are waited for too, because libraries swallow exceptions in them; a second Ctrl-C waits for none.
    """
    pressed_again = number == signal.SIGINT and signal.getitimer(signal.ITIMER_REAL)[0] > 0
    if _waits or (_importing(frame) and not pressed_again):
        signal.setitimer(signal.ITIMER_REAL, SECONDS_BETWEEN_TRIES)
    else:
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise KeyboardInterrupt


def _importing(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None
