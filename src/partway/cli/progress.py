"""A bar that shows how far a command is, with rate and time left; outside a terminal, a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from partway.cli.interruptions import interruptions_wait

SECONDS_BETWEEN_LINES = 10.0


class Bar:
    """Shows on standard error how many of `unit` are done; nothing at all when quiet."""

    def __init__(
        self,
        label: str,
        unit: str,
        *,
        quiet: bool = False,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.label = label
        self.unit = unit
        self.quiet = quiet
        self.console = console or Console(stderr=True)
        self._clock = clock
        self._started = self._line_at = clock()
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[numbers]}"))
        self._bar = Progress(*columns, console=self.console, transient=True)
        self._task = self._bar.add_task(label, numbers="")

    def __enter__(self) -> Self:
        if self.console.is_terminal and not self.quiet:
            with interruptions_wait():  # a bar half started would leave the cursor hidden
                self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar.live.is_started:
            with interruptions_wait():
                self._bar.stop()

    def show(self, done: int, total: int, resumed: int = 0) -> None:
        """`done` of `total`; the `resumed` ones cost no time and do not count for the rate."""
        if self.quiet:
            return
        now = self._clock()
        numbers = self._numbers(done, total, resumed, now - self._started)
        if self.console.is_terminal:
            self._bar.update(self._task, completed=done, total=total, numbers=numbers)
        elif done == total or now >= self._line_at + SECONDS_BETWEEN_LINES:
            self._line_at = now
            # A log may be narrower than a line; wrapping and colours are for terminals.
            self.console.print(f"{self.label}: {numbers}", soft_wrap=True, markup=False, highlight=False)

    def _numbers(self, done: int, total: int, resumed: int, seconds: float) -> str:
        shown = f"{done:,} of {total:,} {self.unit}"
        if done <= resumed or seconds <= 0:  # there is no rate yet
            return shown
        rate = (done - resumed) / seconds
        left = round((total - done) / rate)
        return f"{shown}, {rate:.3g} per second, {left // 3600}:{left // 60 % 60:02d}:{left % 60:02d} left"


def fitting(parts: Sequence[str], room: int) -> str:
    """As many of the parts as fit whole, the first ones first.

    >>> fitting(["step 10/100", "1:15 left", "samples: new full 25%", "loss 1.2"], 35)
    'step 10/100  1:15 left  loss 1.2'
    """
    line = ""
    for part in parts:
        longer = f"{line}  {part}" if line else part
        line = longer if len(longer) <= room else line  # a shorter part may still fit
    return line
