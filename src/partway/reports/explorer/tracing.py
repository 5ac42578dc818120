"""Traces for the explorer: what ran out of time or memory once is not run again while the page is open."""

from __future__ import annotations

from collections.abc import Sequence

from partway.buffer import Rules
from partway.execution import Trace, trace_all

MAX_REMEMBERED = 4096

_exhausted: dict[tuple[str, Rules], Trace] = {}


def traced(texts: Sequence[str], rules: Rules) -> list[Trace]:
    """The traces of solutions as the buffers of a run see them."""
    fresh = list(dict.fromkeys(text for text in texts if (text, rules) not in _exhausted))
    found = dict(
        zip(fresh, trace_all(fresh, state=rules.state, answer_variable=rules.answer_variable), strict=True)
    )
    traces = [found.get(text) or _exhausted[text, rules] for text in texts]
    for text, trace in found.items():
        if trace.failure is not None and trace.failure.kind in ("timeout", "memory"):
            _exhausted[text, rules] = trace
    while len(_exhausted) > MAX_REMEMBERED:
        del _exhausted[next(iter(_exhausted))]
    return traces
