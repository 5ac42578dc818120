"""Judges the samples of a run by other rules: what would it have kept? No training is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from partway.buffer import Rules, Verdict, reconsider, seed_buffers
from partway.buffer.buffer import KINDS
from partway.buffer.rules import DeadEnds
from partway.errors import ConfigError, RunError, shown
from partway.language.language import Dedup
from partway.language.named import flat, language_of
from partway.runs import Run, read_rows
from partway.settings import checked
from straightline import StateMode

LEAST = {"length_tolerance": 0, "length_limit": 1, "max_solutions_per_problem": 1}  # as training asks


@dataclass(frozen=True)
class JudgingSettings:
    """The settings of training that decide what becomes of a sample, and nothing else."""

    self_sampling: Literal["fcs", "fcs+pcs"]
    state: StateMode
    dedup: Dedup
    length_tolerance: int
    length_limit: int | None
    max_solutions_per_problem: int | None
    dead_ends: DeadEnds
    spurious: Literal["keep", "flag", "drop"]


@dataclass(frozen=True)
class Rejudged:
    """What became of a run's samples with these settings in place of its own."""

    settings: dict[str, Any]
    verdicts: dict[Verdict, int]
    per_problem: dict[str, float]  # by kind, the kept solutions, references included


def parse_changes(text: str) -> dict[str, Any]:
    """The settings in `key=value,key=value`.

    >>> parse_changes("dedup=alpha,length_tolerance=2")
    {'dedup': 'alpha', 'length_tolerance': 2}
    """
    pairs = dict(part.partition("=")[::2] for part in text.split(","))
    if not all(pairs.values()):
        raise ConfigError(f"{shown(text)}: expected KEY=VALUE,... such as dedup=alpha,dead_ends=drop")
    changes = checked({}, JudgingSettings, {key.strip(): value for key, value in pairs.items()})
    for key, least in LEAST.items():
        if (value := changes.get(key)) is not None and value < least:
            raise ConfigError(f"{key} is {value}, expected at least {least}")
    return changes


def rejudge(run: Run, changes: Mapping[str, Any]) -> Rejudged:
    """Give the run's samples, in their order, to fresh buffers that have these settings for the run's own.

    The samples stay what they are: one that continues a beginning is judged also where the other rules would
    not have kept that beginning.
    """
    settings = flat(run.config) | dict(changes)
    language = language_of(settings)
    buffers = seed_buffers(run.problems(), Rules.of(settings), language)
    if settings.get("buffer_file") is not None:
        begun_with = Path(settings["buffer_file"])
        if not begun_with.is_file():
            raise RunError(f"{run.directory}: began with the solutions in {begun_with}, which is not there")
        reconsider(buffers, read_rows(begun_with))
    verdicts: Counter[Verdict] = Counter()
    for step, group in groupby(run.samples(), key=lambda sample: sample.step):
        samples = list(group)
        for gone in (sample.problem for sample in samples if sample.problem not in buffers):
            raise RunError(f"{run.directory}: there is no problem {gone!r}; was a file changed?")
        traces = language.trace_all([(buffers[one.problem].problem, one.text) for one in samples])
        for sample, trace in zip(samples, traces, strict=True):
            buffer = buffers[sample.problem]
            verdicts[buffer.consider(trace, step)] += 1
            if sample.count > 1:  # the first of equal ones may have been new; the others are known
                verdicts[buffer.consider(trace, step)] += sample.count - 1
    if not verdicts:
        raise RunError(f"{run.directory}: no self-samples to judge; this run learned from references alone")
    return Rejudged(
        dict(changes),
        {verdict: verdicts[verdict] for verdict in Verdict},
        {kind: sum(len(getattr(b, kind)) for b in buffers.values()) / len(buffers) for kind in KINDS},
    )
