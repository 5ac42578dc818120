"""Your own metrics: functions that give a number for a problem and its judged samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from partway.evaluation import EvaluationPlan, Judged, ProblemResult
from partway.problem import Problem
from partway.registry import imported

Metric = Callable[[Problem, Sequence[Judged]], float]


def functions(plan: EvaluationPlan) -> dict[str, Metric]:
    """The functions that a plan names, each under its own name; one that is not there is an error."""
    return {path.rpartition(":")[2]: imported(path, "metrics") for path in plan.own_metrics}


def with_own(
    problems: Sequence[Problem], results: Iterable[ProblemResult], plan: EvaluationPlan
) -> list[ProblemResult]:
    """The results, each with what these functions say of it."""
    found = functions(plan)
    return [
        replace(one, own=tuple((name, float(of(p, one.samples or one.pass1))) for name, of in found.items()))
        for p, one in zip(problems, results, strict=True)
    ]
