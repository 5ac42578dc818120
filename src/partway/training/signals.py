"""SIGINT and SIGTERM as a wish to stop: the step is saved first; a second SIGINT stops at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupted(KeyboardInterrupt):
    """Training stopped at a signal, after saving; `signal` is its number."""

    def __init__(self, number: int, saved: str) -> None:
        super().__init__(
            f"{signal.Signals(number).name} received; {saved} is saved, --resume goes on from there"
        )
        self.signal = number


class StopSignals:
    """While entered, remembers the first SIGINT or SIGTERM in `received` (0: none yet)."""

    def __init__(self) -> None:
        self.received = 0
        self._is_told = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        self.received, self._is_told = 0, False
        if threading.current_thread() is threading.main_thread():  # nobody else may set handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._remember)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    def is_news(self) -> bool:
        """Whether a signal was received since this was last asked."""
        was_told, self._is_told = self._is_told, bool(self.received)
        return self._is_told and not was_told

    def _remember(self, number: int, frame: FrameType | None) -> None:
        # A scheduler may send SIGTERM again and again; only a person who presses Ctrl-C twice is in a hurry.
        if self.received and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = self.received or number
