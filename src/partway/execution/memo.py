"""The memo from texts to traces: known programs are not run again. Its size is bounded in bytes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from partway.caching import BoundedCache
from partway.execution.traces import OneEach, Trace

MAX_BYTES = 128 << 20
MAX_TRACE_BYTES = 256 << 10  # a larger one is cheaper to make again than to keep
STEP_BYTES = 450  # the objects around one step's text, state and number


class Memo:
    """Traces of earlier programs, by their text."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._traces = BoundedCache[str, Trace](max_bytes, size_of, MAX_TRACE_BYTES)
        self.recall = self._traces.get  # the trace of a program, if it is still known

    def remember(self, found: Mapping[str, Trace]) -> None:
        """Keep traces; not of what ran out of time or memory, which may not happen again."""
        put = self._traces.put
        for text, trace in found.items():
            if trace.failure is None:
                put(text, trace)
                # A data set's spelling is read once; from then on its problem is known by its canonical text.
                if (canonical := "\n".join(trace.solution.steps)) != text.rstrip("\n"):
                    put(canonical, trace)
            elif trace.failure.kind in ("error", "forbidden"):
                put(text, trace)

    def __len__(self) -> int:
        return len(self._traces)


def size_of(text: str, found: Trace) -> int:
    """About how many bytes a trace holds; never much less than it does."""
    states = found.states
    if type(found.changes) is OneEach:  # the usual program, whose last state is its longest
        return 2 * (len(text) + len(states) * len(states[-1])) + STEP_BYTES * (1 + len(states))
    texts = len(text) + sum(map(len, states))
    if not found.isolated:
        return 2 * texts + STEP_BYTES * (1 + len(states))  # its values are plain numbers
    values = (value[0] for changed in found.changes for value in changed.values() if value is not None)
    return 4 * texts + STEP_BYTES * (1 + len(states)) + _bytes_of_all(values)


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
