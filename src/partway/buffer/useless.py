"""Kept beginnings that are not worth learning, though the paper's rules keep them."""

from __future__ import annotations

from dataclasses import replace

from partway.buffer.buffer import SolutionBuffer
from partway.solution import Solution


def dead_ends(buffer: SolutionBuffer) -> tuple[Solution, ...]:
    """Beginnings that no kept solution completes: what `dead_ends: drop` would not have kept."""
    rules = replace(buffer.rules, dead_ends="drop", stitch=False, spurious="keep", max_solutions=None)
    strict = SolutionBuffer(buffer.problem, rules, buffer.programs)
    kept = (*buffer.fully_correct, *buffer.stitched, *buffer.partially_correct)
    for trace in buffer.programs.trace_all([solution.text for solution in kept]):
        strict.consider(trace)
    completed = set(strict.partially_correct)
    return tuple(beginning for beginning in buffer.partially_correct if beginning not in completed)


def renamings(buffer: SolutionBuffer) -> tuple[Solution, ...]:
    """Beginnings that only rename what was known: what `dedup: alpha` would not have kept."""
    whole = (*buffer.fully_correct, *buffer.stitched)
    prefixes = (solution.prefix(length) for solution in whole for length in range(1, len(solution) + 1))
    known = set(map(buffer.programs.renamed, prefixes))
    found = []
    for beginning in buffer.partially_correct:
        form = buffer.programs.renamed(beginning)
        if form in known:
            found.append(beginning)
        known.add(form)
    return tuple(found)
