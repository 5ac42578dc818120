"""One problem as the page shows it: its kept solutions side by side with their states, as in Figure 1.

Everything a reader sees is worked out here, in plain JSON values; the page only draws it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress

from partway import registry
from partway.buffer import SolutionBuffer
from partway.errors import CodeError
from partway.language import Language
from partway.language.named import Unread
from partway.problem import Problem
from partway.registry import refused
from partway.runs import Row
from partway.solution import Solution
from runexplorer.known import KnownSolutions, SampleGroup, drawn, spelled
from runexplorer.run_parts import traced
from runreports.buffer_html import unshown_tests
from runreports.trace_html import KnownStates

MAX_TYPED_STEPS = 200  # each is shown with its state: a page of more is slow, and not read


def known_of(problem: Problem, buffer: SolutionBuffer) -> KnownSolutions:
    """What the buffer of a problem knows."""
    kept = buffer.to_json()["solutions"]
    return KnownSolutions(
        problem,
        buffer.language,
        tuple(Solution(tuple(solution["steps"])) for solution in kept),
        KnownStates.of([solution["states"] for solution in kept]),
    )


def problem_view(
    problem: Problem, buffer: SolutionBuffer, known: KnownSolutions, samples: Sequence[SampleGroup]
) -> Row:
    """The question, the kept solutions and their tree; `samples` say how likely and how frequent each is."""
    kept, doubts = buffer.to_json()["solutions"], doubts_of(buffer)
    traces = traced(problem, [solution.text for solution in known.solutions], known.language)
    return {
        "id": problem.id,
        "question": problem.question,
        **answer_of(problem, known.language),
        "has_reference": problem.reference is not None,
        "solutions": [
            {
                **known.compared(trace),
                "is_right": row["kind"] == "fully_correct",
                "kind": "reference" if solution == problem.reference else row["kind"],
                "found": row["found"],
                **({"doubt": doubts[solution]} if solution in doubts else {}),
                **_history(solution, row, samples, known),
            }
            for solution, row, trace in zip(known.solutions, kept, traces, strict=True)
        ],
        "states": known.states.to_json(),
        "tree": tree_of(known.solutions),
    }


def answer_of(problem: Problem, language: Language) -> Row:
    """What makes a solution right: an answer to compare with, or tests, which the question may show."""
    tests = unshown_tests(problem, language)
    return {"answer": spelled(problem.answer)} if tests is None else {"tests": tests}


def doubts_of(buffer: SolutionBuffer) -> Mapping[Solution, str]:
    """Why kept solutions are not trusted; what training did not ask is found out here, if a part can."""
    found = registry.parts("views").get("doubts")
    doubts: Mapping[Solution, str] = {}
    with suppress(CodeError):  # nobody can tell without it
        doubts = doubts if found is None else found.load()(buffer)
    return doubts


def _history(solution: Solution, kept: Row, samples: Sequence[SampleGroup], known: KnownSolutions) -> Row:
    """How a kept solution came about: how often it was drawn, how likely, and how its sample went on."""
    if kept["kind"] != "partially_correct":
        same = [group for group in samples if group.trace.solution == solution and not group.trace.failure]
        rows = [row for group in same for row in group.rows]
        return {"drawn": drawn(rows), "probability": _probability(rows)}
    begun = [group for group in samples if group.trace.solution.startswith(solution)]
    # The sample of which it was kept: drawn at the step at which it was found.
    found = [(g.trace, row) for g in begun for row in g.rows if row["step"] == kept["found"]]
    history: Row = {"drawn": drawn(row for group in begun for row in group.rows)}
    if not found:
        return history
    trace, row = found[0]
    whole = known.compared(trace)
    rest = {"steps": whole["steps"][len(solution) :], "failure": whole.get("failure")}
    return history | {"probability": _probability([row]), "rest": rest}


def _probability(rows: Sequence[Row]) -> Row | None:
    """How likely the latest of these samples was, those from scratch first; None if it was not recorded."""
    recorded = [row for row in rows if row["log_prob"] is not None]
    if not recorded:
        return None
    latest = max(recorded, key=lambda row: (not row["prefix"], row["step"]))
    return {
        "probability": math.exp(min(0.0, latest["log_prob"])),  # rounding may leave a little above 0
        "log_prob": latest["log_prob"],
        "step": latest["step"],
        "is_guided": bool(latest["prefix"]),
    }


def tree_of(solutions: Sequence[Solution]) -> list[Row]:
    """Solutions as a tree of shared prefixes: the branches below the empty one, each up to where it parts.

    A branch says which solution it shows (`solution`) and from which step on (`start`), which solution ends
    with it (`leaf`), and the branches that continue it.

    >>> tree_of([Solution(("a = 1", "b = 2")), Solution(("a = 1", "c = 2"))])[0]["length"]
    1
    """
    return _branches([(number, solution.steps) for number, solution in enumerate(solutions)], 0)


def _branches(numbered: Sequence[tuple[int, tuple[str, ...]]], start: int) -> list[Row]:
    by_step: defaultdict[str, list[tuple[int, tuple[str, ...]]]] = defaultdict(list)
    for number, steps in numbered:
        if len(steps) > start:
            by_step[steps[start]].append((number, steps))
    return [_branch(together, start) for together in by_step.values()]


def _branch(numbered: Sequence[tuple[int, tuple[str, ...]]], start: int) -> Row:
    end = start + 1
    shortest = min(len(steps) for _, steps in numbered)
    # A loop over the shared steps, not a branch for each, which would recurse too deep.
    while end < shortest and len({steps[end] for _, steps in numbered}) == 1:
        end += 1
    branch: Row = {"solution": numbered[0][0], "start": start, "length": end - start}
    leaves = [number for number, steps in numbered if len(steps) == end]
    if leaves:
        branch["leaf"] = leaves[0]
    return branch | {"branches": _branches(numbered, end)}


def typed_view(text: str, buffer: SolutionBuffer, known: KnownSolutions) -> Row:
    """A program somebody typed: its trace, what the buffer would say to it, and how far it is right."""
    if isinstance(known.language, Unread):
        raise refused(known.language.path, "language")
    (trace,) = traced(known.problem, [text], known.language)
    if len(trace.solution) > MAX_TYPED_STEPS:
        raise ValueError(f"a program of {len(trace.solution):,} steps; at most {MAX_TYPED_STEPS} are shown")
    view = known.compared(trace)
    if view["matching"]:
        state = trace.states[view["matching"] - 1]
        view["places"] = known.states.places[known.states.numbers[state]]
    return view | {"verdict": str(buffer.consider(trace))}
