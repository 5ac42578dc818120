"""Buffers for `python -m benchmarks learn`: what the algorithm keeps of other ways to solve real problems.

Other ways are solution paths of built-in problems, or steps of a reference in another order; two in five are
cut somewhere, so that a part of what is kept is partially correct.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from random import Random

from partway.buffer import SolutionBuffer
from partway.demo.storyproblems import solution_paths
from partway.errors import ProblemError
from partway.language import trace
from partway.problem import Problem
from partway.solution import Solution

CUT = 0.4  # the paper's buffers hold 1.1 partially correct solutions for 1.6 fully correct ones
PATIENCE = 30  # other ways looked at per solution wanted: most are known or too long


def filled_buffers(
    problems: Sequence[Problem], count: int, solutions: int
) -> list[tuple[Problem, list[tuple[Solution, bool]]]]:
    """`count` problems with `solutions` kept ones each, the reference first, and whether each is finished."""
    filled = []
    for problem in problems:
        kept = _kept(problem, solutions, Random(problem.id))
        if len(kept) == solutions:
            filled.append((problem, kept))
        if len(filled) == count:
            return filled
    raise ProblemError(
        f"only {len(filled)} of {len(problems)} problems have {solutions} solutions, and {count} are needed; "
        "try more problems, a smaller --batch or smaller --sizes"
    )


def _kept(problem: Problem, solutions: int, rng: Random) -> list[tuple[Solution, bool]]:
    if problem.reference is None:
        return []
    buffer = SolutionBuffer.seeded(problem)
    for _, solution in zip(range(PATIENCE * solutions), _other_ways(problem, rng), strict=False):
        if len(buffer.fully_correct) + len(buffer.partially_correct) == solutions:
            break
        end = rng.randint(1, len(solution)) if rng.random() < CUT else len(solution)
        buffer.consider(trace(solution.prefix(end)))
    others = [(s, True) for s in buffer.fully_correct[1:]] + [(s, False) for s in buffer.partially_correct]
    rng.shuffle(others)
    return [(problem.reference, True), *others][:solutions]


def _other_ways(problem: Problem, rng: Random) -> Iterator[Solution]:
    if "formulas" in problem.meta:
        while paths := solution_paths(problem, rng, 8):
            yield from paths
    while problem.reference is not None:
        yield Solution(_reordered(problem.reference.steps, rng))


def _reordered(steps: Sequence[str], rng: Random) -> tuple[str, ...]:
    """The steps in an order in which every name is assigned before it is read, and the last one last."""
    left, done = list(steps[:-1]), list[str]()
    while left:
        unassigned = {name for step in left for name in _names(step, ast.Store)}
        # None is ready where a step reads what it assigns itself: then the next one in order.
        ready = [step for step in left if not unassigned & _names(step, ast.Load)] or left[:1]
        done.append(rng.choice(ready))
        left.remove(done[-1])
    return (*done, steps[-1])


def _names(step: str, context: type[ast.expr_context]) -> set[str]:
    nodes = ast.walk(ast.parse(step))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, context)}
