"""How many cores there are, and a `map` over several processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeAlias

ITEMS_AT_ONCE = 50  # a process gets so many at a time

RunAll: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def side_by_side(processes: int) -> Iterator[RunAll]:
    """`map`, done by so many processes; results come in the order of the items.

    Functions and items go there by pickle, so they have to be importable. Whatever ends the block ends them.
    """
    if processes <= 1:
        yield map
        return
    # Not forked: this process may have threads, and a child must not inherit what they hold.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, initializer=_leave_interrupts_to_the_parent)
    try:
        yield lambda function, items: pool.map(function, items, chunksize=ITEMS_AT_ONCE)
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
