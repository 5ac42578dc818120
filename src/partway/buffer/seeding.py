"""Buffers of many problems: seed them with references, give saved solutions to them, write them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

from partway.buffer.buffer import SolutionBuffer
from partway.buffer.rules import Rules, Verdict, shared_rules
from partway.errors import ProblemError, shown
from partway.language import PYTHON, Language, Trace
from partway.problem import Problem

USUAL_LENGTH = 0.9  # the share of references that are no longer than solutions may be without one


def seed_buffers(
    problems: Iterable[Problem], rules: Rules | None = None, language: Language = PYTHON
) -> dict[str, SolutionBuffer]:
    """A seeded buffer per problem, by id."""
    problems, rules = list(problems), rules or shared_rules()
    traces, usual = reference_traces(problems, language), usual_length(problems)
    return {p.id: SolutionBuffer.seeded(p, rules, language, traces.get(p.id), usual) for p in problems}


def usual_length(problems: Iterable[Problem]) -> int | None:
    """The length that most references keep to, None if there are none."""
    lengths = sorted(len(problem.reference) for problem in problems if problem.reference is not None)
    return lengths[int(USUAL_LENGTH * len(lengths))] if lengths else None


def reference_traces(problems: Iterable[Problem], language: Language = PYTHON) -> dict[str, Trace]:
    """The references that there are, run in one batch, by the ids of their problems."""
    with_reference = {problem.id: problem for problem in problems if problem.reference is not None}
    pairs = [(problem, str(problem.reference)) for problem in with_reference.values()]
    return dict(zip(with_reference, language.trace_all(pairs), strict=True))


def reconsider(buffers: Mapping[str, SolutionBuffer], rows: Iterable[Mapping[str, Any]]) -> Counter[Verdict]:
    """Give saved solutions to `buffers` as if just sampled: each is run again and judged by their rules.

    `rows` are lines of a buffer.jsonl, perhaps of a run with other rules; problems without a buffer here are
    passed over. What makes a beginning right may come after it, so those judged incorrect are judged again
    for as long as something new is kept.
    """
    saved = [
        (solution.get("found", 0), row["id"], "\n".join(solution["steps"]))
        for row in map(_checked, rows)
        if row["id"] in buffers
        for solution in row["solutions"]
    ]
    saved.sort(key=lambda entry: entry[0])  # as found: a beginning may be right by an earlier solution
    if not saved:
        return Counter()
    traces = buffers[saved[0][1]].language.trace_all([(buffers[id].problem, text) for _, id, text in saved])
    verdicts: Counter[Verdict] = Counter()
    pending = [(id, trace) for (_, id, _), trace in zip(saved, traces, strict=True)]
    while pending:
        judged = [(buffers[id].consider(trace), id, trace) for id, trace in pending]
        is_progress = any(verdict.is_new for verdict, *_ in judged)
        again = [(id, trace) for verdict, id, trace in judged if verdict is Verdict.INCORRECT and is_progress]
        verdicts.update(verdict for verdict, *_ in judged)
        verdicts[Verdict.INCORRECT] -= len(again)  # they are counted when they are judged for the last time
        pending = again
    return +verdicts  # drops verdicts with a count of 0


def _checked(row: Any) -> Mapping[str, Any]:
    """A row of saved solutions as it should be."""
    try:
        for solution in row["solutions"]:
            "\n".join(solution["steps"])
        return {"id": str(row["id"]), "solutions": row["solutions"]}
    except (KeyError, TypeError):
        raise ProblemError(
            f"{shown(row)} has no saved solutions, expected a line of a buffer.jsonl"
        ) from None


def write_buffers(stream: TextIO, buffers: Iterable[SolutionBuffer]) -> None:
    """One JSON line per buffer, written as it is made."""
    for buffer in buffers:
        row = {"id": buffer.problem.id, **buffer.to_json()}
        stream.write(json.dumps(row, ensure_ascii=False) + "\n")
