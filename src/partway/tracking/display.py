"""Shows how a training goes: one live line with a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import logging
import math
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column
from transformers import PrinterCallback, ProgressCallback

from partway.buffer import Verdict
from partway.cli.options import counted
from partway.cli.progress import fitting
from partway.evaluation import EvaluationProgress
from partway.training.callbacks import Watcher

if TYPE_CHECKING:
    from partway.training import SelfSamplingTrainer

TRAINING, BAR = "training", 20
SILENCE = 30.0  # seconds; longer than that no plain log is without a line


class TiedWeights(Watcher):
    """Tied weights are saved once; that the other name is missing is not worth transformers' warning."""

    def __init__(self, trainer: SelfSamplingTrainer) -> None:
        self.logger = logging.getLogger("transformers.trainer")

    def __enter__(self) -> Self:
        self.logger.addFilter(self.is_news)
        return self

    def __exit__(self, *_: object) -> None:
        self.logger.removeFilter(self.is_news)

    def is_news(self, record: logging.LogRecord) -> bool:
        """Whether a warning tells something: nothing can be missing, as the manifest has all files."""
        return "missing keys in the checkpoint" not in record.getMessage()


class Display(Watcher):
    """Shows nothing; the displays below show more."""

    trainer: SelfSamplingTrainer | None = None
    evaluation: EvaluationProgress | None = None  # that is under way
    state: Any = None  # transformers' own, which counts the steps

    def __init__(self) -> None:
        self.latest: dict[str, Any] = {}
        self.first_step, self.started = 0, time.monotonic()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.state, self.first_step, self.started = state, state.global_step, time.monotonic()
        engine: Any = getattr(self.trainer, "engine", None)
        if hasattr(engine, "on_drawn"):
            engine.on_drawn = self.drawing

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any], **_: Any) -> None:
        self.evaluation = None
        self.latest |= logs

    def evaluating(self, progress: EvaluationProgress) -> None:
        self.evaluation = progress
        self.drawing(0)

    def drawing(self, drawn: int) -> None:
        """So many samples are drawn of those that a step or a part of an evaluation needs."""
        if (under_way := self.evaluation) is None:
            step = f"step {self.state.global_step + 1}/{self.state.max_steps}"
            self.so_far(TRAINING, f"{step}, {counted(drawn, 'sample')} drawn")
        else:
            done = min(under_way.done + drawn, under_way.total)
            self.so_far("evaluating", f"{done:,} of {under_way.total:,} samples drawn")

    def so_far(self, doing: str, text: str) -> None:
        """Show how far something is that takes time."""

    def pace(self, state: Any) -> tuple[str, str]:
        """The time left, and steps per second."""
        done = state.global_step - self.first_step  # a resumed run made the others before
        rate = done / max(time.monotonic() - self.started, 1e-9)
        left = (state.max_steps - state.global_step) / rate if rate else 0.0
        return f"{duration(left)} left", f"{rate:.2f} steps/s"


class PlainDisplay(Display):
    """One line per line of metrics, on standard error; others while there is none, the first at once."""

    said_at = -math.inf

    def say(self, line: str) -> None:
        print(f"partway: {line}", file=sys.stderr, flush=True)

    def so_far(self, doing: str, text: str) -> None:
        if time.monotonic() >= self.said_at + SILENCE:
            self.said_at = time.monotonic()
            self.say(f"{doing}: {text}")

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        left, rate = self.pace(state)
        self.so_far(TRAINING, f"step {state.global_step}/{state.max_steps}, {rate}, {left}")

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any], **_: Any) -> None:
        super().on_log(args, state, control, logs)
        if text := describe(logs):
            head = f"step {state.global_step}/{state.max_steps}"
            left, rate = self.pace(state)
            tail = f"  ({rate}, {left})" if "loss" in logs else ""
            print(f"{head}  {text}{tail}", file=sys.stderr, flush=True)
            self.said_at = time.monotonic()


class LiveDisplay(Display):
    """A bar that stays in place, for a terminal; above it lines that stay: every evaluation, and the end."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        text = TextColumn("{task.fields[text]}", table_column=Column(no_wrap=True))
        columns = (TextColumn("{task.description}"), BarColumn(BAR), text)
        self.bar = Progress(*columns, console=console)
        self.task = self.bar.add_task(TRAINING, text="the first step")

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def say(self, line: str) -> None:
        self.bar.console.print(f"partway: {line}", highlight=False)

    def so_far(self, doing: str, text: str) -> None:
        if doing != TRAINING or not self.bar.tasks[0].completed:  # later steps have more to say
            self.bar.update(self.task, description=doing, text=text)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._show(state)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any], **_: Any) -> None:
        super().on_log(args, state, control, logs)
        if any(key.startswith("eval_pass@") for key in logs):
            self._keep(state, self.latest)
        elif "train_loss" in logs:
            self._keep(state, logs)
        self._show(state)

    def _keep(self, state: Any, metrics: Mapping[str, Any]) -> None:
        parts = [f"step {state.global_step}/{state.max_steps}", *glances(metrics)]
        self.bar.console.print(fitting(parts, self.bar.console.width), highlight=False, markup=False)

    def _show(self, state: Any) -> None:
        left, rate = self.pace(state)
        # What is left out first on a narrow terminal comes last.
        parts = [f"step {state.global_step}/{state.max_steps}", left, *glances(self.latest), rate]
        room = self.bar.console.width - len(TRAINING) - BAR - 2  # a space on either side of the bar
        self.bar.update(
            self.task,
            description=TRAINING,
            total=state.max_steps,
            completed=state.global_step,
            text=fitting(parts, room),
        )


class Relay(Display):
    """Tells a function how far training is: steps done, steps in all, what the latest line says."""

    def __init__(self, tell: Callable[[int, int, str], None]) -> None:
        super().__init__()
        self.tell = tell

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.tell(state.global_step, state.max_steps, describe(self.latest))


def of_trainer(trainer: SelfSamplingTrainer) -> Display:
    """The display of a training; it shows what transformers' own would."""
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    shown = display(quiet=bool(trainer.args.disable_tqdm) or trainer.args.process_index > 0)
    shown.trainer = trainer
    return shown


def display(quiet: bool, console: Console | None = None) -> Display:
    """The display that fits where standard error goes."""
    console = console or Console(stderr=True)
    if quiet:
        return Display()
    return LiveDisplay(console) if console.is_terminal else PlainDisplay()


def describe(metrics: Mapping[str, Any]) -> str:
    """The metrics worth a glance, in one line."""
    return "  ".join(glances(metrics))


def glances(metrics: Mapping[str, Any]) -> list[str]:
    """The metrics worth a glance, what matters most first."""
    parts = []
    if "loss" in metrics:
        parts.append(f"loss {metrics['loss']:.3f}")
    passes = {key[5:]: value for key, value in metrics.items() if re.fullmatch(r"eval_pass@\d+", key)}
    if passes:
        parts.append(", ".join(f"{name} {value:.1%}" for name, value in passes.items()))
    if "buffer/problems_with_a_solution" in metrics:
        parts.append(f"{counted(metrics['buffer/problems_with_a_solution'], 'problem')} solved")
    if "buffer/fcs_per_problem" in metrics:
        full, partial = metrics["buffer/fcs_per_problem"], metrics["buffer/pcs_per_problem"]
        parts.append(f"kept {full:.2f} fully + {partial:.2f} partially correct per problem")
    # In the order of verdicts, best first; what did not occur is left out.
    shares = {verdict.words: metrics.get(f"samples/frac_{verdict}") for verdict in Verdict}
    if shown := [f"{words} {share:.0%}" for words, share in shares.items() if share]:
        parts.append("samples: " + ", ".join(shown))
    if "train_loss" in metrics:
        parts.append(
            f"finished; final/ is step {metrics['final_step']}" if "final_step" in metrics else "finished"
        )
    return parts


def duration(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> duration(75), duration(7384)
    ('1:15', '2:03:04')
    """
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
