"""Finds the problems whose programs cost most: each distinct sample of a run is run again and measured."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

from partway import registry
from partway.runs import Run

LIMITS = ("timeout", "memory")
WARM_UP = "for n in [1, 2]:\n    m = n\n"


@dataclass
class Cost:
    """What the programs of a problem cost; each distinct one counts once, as in training."""

    problem: str
    seconds: float = 0.0  # of all distinct programs
    drawn: int = 0
    stopped: Counter[str] = field(default_factory=Counter)  # samples that ran out of time or memory
    slowest: tuple[float, str] = (0.0, "")  # the seconds of one, and its text
    peak_bytes: int = 0  # the most that one held in a process of its own; 0 if none needed one


def costs(
    run: Run,
    clock: Callable[[], float] = time.perf_counter,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Cost]:
    """The costs of every problem that was sampled, the highest first."""
    problems = {problem.id: problem for problem in run.problems("train")}
    drawn: dict[str, Counter[str]] = {}
    for sample in run.samples():
        drawn.setdefault(sample.problem, Counter())[sample.text] += sample.count
    found = []
    for problem in [*problems.values()][:1]:
        run.language.trace_all([(problem, WARM_UP)])  # starts the workers, which is not a program's cost
    gauge = registry.parts("rooms").get("peaks")
    for done, (key, texts) in enumerate(drawn.items(), 1):
        cost = Cost(key, drawn=texts.total())
        for text, count in texts.items():
            with gauge.load()() if gauge else nullcontext(()) as peaks:
                started = clock()
                (trace,) = run.language.trace_all([(problems[key], text)])
                seconds = clock() - started
            cost.peak_bytes = max(cost.peak_bytes, *peaks, 0)
            cost.seconds += seconds
            cost.slowest = max(cost.slowest, (seconds, text))
            if trace.failure is not None and trace.failure.kind in LIMITS:
                cost.stopped[trace.failure.kind] += count
        found.append(cost)
        on_progress(done, len(drawn))
    return sorted(found, key=lambda cost: -cost.seconds)
