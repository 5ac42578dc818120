"""Traces for the explorer: what ran out of time or memory once is not run again while the page is open."""

from __future__ import annotations

from collections.abc import Sequence

from partway.execution import Programs, Trace

MAX_REMEMBERED = 4096

_exhausted: dict[tuple[str, Programs], Trace] = {}


def traced(texts: Sequence[str], programs: Programs) -> list[Trace]:
    """The traces of solutions as the buffers of a run see them."""
    fresh = list(dict.fromkeys(text for text in texts if (text, programs) not in _exhausted))
    found = dict(zip(fresh, programs.trace_all(fresh), strict=True))
    traces = [found.get(text) or _exhausted[text, programs] for text in texts]
    for text, trace in found.items():
        if trace.failure is not None and trace.failure.kind in ("timeout", "memory"):
            _exhausted[text, programs] = trace
    while len(_exhausted) > MAX_REMEMBERED:
        del _exhausted[next(iter(_exhausted))]
    return traces
