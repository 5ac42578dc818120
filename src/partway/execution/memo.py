"""The memo from texts to traces: known programs are not run again. Its size is bounded in bytes."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TypeAlias

from partway.caching import BoundedCache
from partway.execution.traces import Trace
from partway.execution.values import StateMode

MAX_BYTES = 128 << 20
MAX_TRACE_BYTES = 256 << 10  # a larger one is cheaper to make again than to keep
STEP_BYTES = 450  # the objects around one step's text, state and number

Key: TypeAlias = tuple[str, StateMode, str]  # text, state mode, answer variable


class Memo:
    """Traces of earlier programs, by what decides a trace."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._traces = BoundedCache[Key, Trace](max_bytes, size_of, MAX_TRACE_BYTES)

    def recall(self, key: Key) -> Trace | None:
        """The trace of this program, if it is still known."""
        return self._traces.get(key)

    def remember(self, key: Key, found: Trace) -> None:
        """Keep a trace; not of what ran out of time or memory, which may not happen again."""
        if found.failure is None or found.failure.kind in ("error", "forbidden"):
            self._traces.put(key, found)

    def forget(self) -> None:
        """Drop what is remembered of earlier programs."""
        self._traces.clear()

    def __len__(self) -> int:
        return len(self._traces)


def size_of(key: Key, found: Trace) -> int:
    """About how many bytes a trace holds; never much less than it does."""
    texts = len(key[0]) + sum(map(len, found.states))
    if not found.isolated:
        return 2 * texts + STEP_BYTES * (1 + len(found.states))  # its values are plain numbers
    values = (value[0] for changed in found.changes for value in changed.values() if value is not None)
    return 4 * texts + STEP_BYTES * (1 + len(found.states)) + _bytes_of_all(values)


def _bytes_of_all(values: Iterable[Any]) -> int:
    """Of values and all they hold; counting ends where the sum is too large to be kept anyway."""
    total = 0
    waiting = list(values)
    while waiting and total <= MAX_TRACE_BYTES:
        value = waiting.pop()
        total += sys.getsizeof(value) + 8
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            waiting += value
    return total
