"""Runs several arms at once, each in a process of one thread and with a bar on standard error."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.managers import SyncManager
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from queue import Queue
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from partway.arms.arms import Arm
from partway.arms.experiment import Experiment
from partway.arms.outcomes import Outcome
from partway.arms.running import run_arm
from partway.arms.trials import Stage
from partway.cli.interruptions import INTERRUPTED, SECONDS_BETWEEN_TRIES, interruptions_wait
from partway.cli.progress import SECONDS_BETWEEN_LINES, fitting

BAR, ELAPSED = 10, len("0:00:00")
SPAWNING = multiprocessing.get_context("spawn")  # a fork would copy locks that torch's threads hold
SIGNALS = {signal.SIGINT, signal.SIGTERM}
CAN_BLOCK = hasattr(signal, "pthread_sigmask")  # not on Windows
News = tuple[str, Stage] | None  # an arm and how far it is; None comes last


def arms_at_once() -> int:
    """As many as there are GPUs, each on its own; without any as there are cores."""
    import torch

    from partway.cli.parallel import cores

    return torch.accelerator.device_count() or cores()


def gpus(jobs: int) -> list[str]:
    """For each of so many processes the one GPU that it is to see, if there are several."""
    import torch

    count = torch.cuda.device_count()
    named = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(count)))
    return [named.split(",")[number % count] if count > 1 else named for number in range(jobs)]


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute in this process as arms do in theirs, so that results are the same everywhere."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def run_arms(experiment: Experiment, directory: Path, jobs: int, quiet: bool) -> list[Outcome]:
    """Every arm with every seed, `jobs` at a time; the outcomes by seed, then arm."""
    cells = cells_of(experiment)
    pool, manager = processes(min(jobs, len(cells))), SyncManager(ctx=SPAWNING)
    with starting():
        manager.start(_begin_manager)
    with manager, Bars(manager.Queue(), [_label(*cell) for cell in cells], quiet) as bars, pool:
        others = set(multiprocessing.active_children())  # the manager: the arms still need it to end well
        try:
            outcomes: dict[tuple[str, int], Outcome] = {}
            waits = [_waits(experiment, *cell) for cell in cells]
            for waited in sorted(set(waits)):
                wave = [cell for cell, of_cell in zip(cells, waits, strict=True) if of_cell == waited]
                with starting():
                    futures = [pool.submit(_run, experiment, *cell, directory, bars.news) for cell in wave]
                for (arm, seed), future in zip(wave, futures, strict=True):
                    outcomes[arm.name, seed] = future.result()
            return [outcomes[arm.name, seed] for arm, seed in cells]
        except BaseException:
            with interruptions_wait():  # an interrupted join would take the pool's thread for ended
                for process in set(multiprocessing.active_children()) - others:
                    process.terminate()  # training saves first
                pool.shutdown(cancel_futures=True)
            time.sleep(2 * SECONDS_BETWEEN_TRIES)  # a signal that ended the process comes first
            raise


def cells_of(experiment: Experiment) -> list[tuple[Arm, int]]:
    """What is to run: by seed, then arm."""
    return [(arm, seed) for seed in experiment.seeds for arm in experiment.arms]


def _waits(experiment: Experiment, arm: Arm, seed: int) -> tuple[int, bool]:
    """How many arms a cell stands on, and whether the first seed tries learning rates for it."""
    below, name = 0, arm.of
    while name is not None:
        below, name = below + 1, experiment.arm(name).of
    return below, seed != experiment.seeds[0] and bool(experiment.tried(arm))


def _label(arm: Arm, seed: int) -> str:
    return f"{arm.label}, seed {seed}"


@contextmanager
def starting() -> Iterator[None]:
    """Start processes that no signal ends before they are ready for it: they inherit what is blocked.

    What was blocked comes right after, before a process that it ended is missed.
    """
    resource_tracker.ensure_running()  # the first process would start it, and that unblocks signals
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS) if CAN_BLOCK else set()
    try:
        with interruptions_wait():
            yield
    finally:
        if CAN_BLOCK:
            signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def processes(count: int) -> ProcessPoolExecutor:
    """So many processes, on a GPU each where there are several."""
    devices = SPAWNING.SimpleQueue()
    for device in gpus(count):
        devices.put(device)
    return ProcessPoolExecutor(count, SPAWNING, _begin, (devices,))


def _begin(devices: SimpleQueue[str]) -> None:
    """Prepare a process: one thread, so that results are the same everywhere, and an end with its parent."""
    os.environ["OMP_NUM_THREADS"] = "1"
    if device := devices.get():
        os.environ["CUDA_VISIBLE_DEVICES"] = device
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Where it does not train, nothing is to be saved.
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    if CAN_BLOCK:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _begin_manager() -> None:
    """Prepare the process that carries news: signals stay blocked, for others still use it."""
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "called in a child"
    parent.join()  # returns when the parent has ended, even if it was killed
    os._exit(1)


def _run(experiment: Experiment, arm: Arm, seed: int, directory: Path, news: Queue[News]) -> Outcome:
    try:
        return run_arm(experiment, arm, seed, directory, lambda stage: news.put((_label(arm, seed), stage)))
    except KeyboardInterrupt:  # saved; without this the process would go on with the next arm
        os._exit(130)


class Bars:
    """Shows the news of all arms: bars on a terminal, now and then a line elsewhere, nothing when quiet."""

    def __init__(self, news: Queue[News], labels: Sequence[str], quiet: bool) -> None:
        self.news = news
        self.quiet = quiet
        self.console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(BAR),
            TimeElapsedColumn(),
            TextColumn("{task.fields[text]}", table_column=Column(no_wrap=True)),
        )
        self.progress = Progress(*columns, console=self.console)
        self.tasks = {label: self.progress.add_task(label, text="", start=False) for label in labels}
        self.lines_at = dict.fromkeys(labels, 0.0)
        self.reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        with interruptions_wait():
            if self.console.is_terminal and not self.quiet:
                self.progress.start()
            self.reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        with interruptions_wait():
            self.news.put(None)
            self.reader.join()
            if self.progress.live.is_started:
                self.progress.stop()

    def _read(self) -> None:
        while (one := self.news.get()) is not None:
            if not self.quiet:
                self._show(*one)

    def _show(self, label: str, stage: Stage) -> None:
        if self.console.is_terminal:
            task, told = self.tasks[label], f"{label}, {stage.name}"
            self.progress.start_task(task)
            self.progress.update(task, description=told, completed=stage.done, total=stage.total)
            parts = [f"{stage.done:,}/{stage.total:,}", *stage.text.split("  ")]
            self.progress.update(task, text=fitting(parts, self._room()))
        elif stage.done == stage.total or time.monotonic() > self.lines_at[label] + SECONDS_BETWEEN_LINES:
            self.lines_at[label] = time.monotonic()
            line = f"{label}, {stage.name}: {stage.done:,} of {stage.total:,}  {stage.text}"
            self.console.print(line, soft_wrap=True, markup=False, highlight=False)

    def _room(self) -> int:
        """The columns of the terminal that labels, bars and times leave."""
        widest = max(len(task.description) for task in self.progress.tasks)
        return self.console.width - widest - BAR - ELAPSED - 3
