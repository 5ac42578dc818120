"""Callbacks beside the training loop: the begin and end of a step, signals to stop, and watchers."""

from __future__ import annotations

import math
import os
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from transformers import TrainerCallback

from partway.evaluation import EvaluationProgress
from partway.training.distributed import gradient_norm

if TYPE_CHECKING:
    from partway.training.trainer import SelfSamplingTrainer


RESUME = "--resume (in Python: resume_from_checkpoint=True)"


class Watcher(TrainerCallback):  # type: ignore[misc]
    """Watches a training, beside what transformers tells its callbacks; this one does nothing.

    Folders add watchers: the registry's "callbacks", each called with the trainer.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Training ends."""

    def say(self, line: str) -> None:
        """Show a remark."""

    def evaluating(self, progress: EvaluationProgress) -> None:
        """Show how far an evaluation is."""

    def finishing(self, directory: Path, step: int) -> None:
        """Add to the final model, that of a step, which is being written into a directory."""


class Turns(TrainerCallback):  # type: ignore[misc]
    """Tells the trainer when a step begins and ends, and stops before a gradient that is not a number."""

    def __init__(self, trainer: SelfSamplingTrainer) -> None:
        self.trainer = trainer

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.trainer.before_step()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        trainer = self.trainer
        if trainer.accelerator.scaler is not None:  # it skips such steps
            return
        norm = gradient_norm(trainer.model)
        if not math.isfinite(norm):
            raise trainer.learned.no_number("gradient's norm", norm, trainer.run, trainer.codec)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.trainer.after_step()


class Interrupted(KeyboardInterrupt):
    """Training stopped at a signal, after saving; `signal` is its number."""

    def __init__(self, number: int, saved: str) -> None:
        super().__init__(
            f"{signal.Signals(number).name} received; {saved} is saved, {RESUME} goes on from there"
        )
        self.signal = number


class StopSignals:
    """While entered, remembers the first SIGINT or SIGTERM in `received` (0: none), and says so at once."""

    def __init__(self, is_first: bool = True) -> None:
        self.received, self.is_first = 0, is_first  # of several processes, one speaks
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        self.received = 0
        if threading.current_thread() is threading.main_thread():  # nobody else may set handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._remember)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    def _remember(self, number: int, frame: FrameType | None) -> None:
        # A scheduler may send SIGTERM again and again; only a person who presses Ctrl-C twice is in a hurry.
        if self.received and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not self.received and self.is_first:
            # Not `print`: whoever was interrupted may hold the lock of standard error.
            os.write(2, b"\npartway: stops and saves after this step or evaluation; Ctrl-C again stops now\n")
        self.received = self.received or number
