"""The rule against luck: a right solution must also do what the reference does with other numbers.

With a reference a solution is compared with it when it is about to be kept. Without one, numbers from nowhere
(in queries: texts) are doubted at once, and of the others those are believed that most agree with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from partway.beyond.variation import Audit, audit, signature, strange_literals
from partway.buffer import SolutionBuffer, Verdict
from partway.buffer.rules import AddedRule, Candidate
from partway.errors import ConfigError, clipped
from partway.evaluation import Judged
from partway.language import Language, Trace
from partway.language.language import tests_of
from partway.problem import Problem
from partway.solution import Solution


def rule(setting: str = "drop") -> AddedRule:
    """The rule as `spurious: flag` or `spurious: drop` asks for it."""
    if setting not in ("flag", "drop"):
        raise ConfigError(f"spurious is {setting!r}, expected one of keep, flag, drop")
    drops = setting == "drop"
    return AddedRule(partial(not_lucky, drops=drops), "no_dead_end", outvoted, learns_doubted=not drops)


def not_lucky(candidate: Candidate, known: SolutionBuffer, drops: bool) -> Candidate:
    """It is right with other numbers, too; if not, it is marked, or only its beginnings are left."""
    problem, solution = known.problem, candidate.trace.solution
    if not candidate.is_whole or solution == problem.reference:
        return candidate
    if problem.reference is None:
        strange = strange_literals(solution, problem.question, known.language)
        reason = _from_nowhere(strange) if strange else ""
    else:
        found = audit(problem, solution, known.language)
        reason = found.reason if found.verdict == "spurious" else ""
    if drops and reason:
        return candidate.beginnings(Verdict.SPURIOUS)
    return candidate._replace(doubt=reason)


def audited(problem: Problem, samples: Sequence[tuple[Judged, Trace]], language: Language) -> list[Judged]:
    """The samples of a problem, each told to be right by luck or not; nothing is told without a reference."""
    if problem.reference is None or tests_of(problem, language) is not None:
        return [one for one, _ in samples]
    return [
        replace(one, lucky=one.passed and _is_lucky(problem, trace.solution, language))
        for one, trace in samples
    ]


def _is_lucky(problem: Problem, solution: Solution, language: Language) -> bool:
    return solution != problem.reference and audit(problem, solution, language).verdict == "spurious"


def outvoted(known: SolutionBuffer) -> Mapping[Solution, str]:
    """Kept solutions that most others disagree with, where there is no reference to compare with."""
    if known.problem.reference is not None:
        return {}
    return _spurious(audit_together(known.problem, known.fully_correct, known.language))


def doubts_of(buffer: SolutionBuffer) -> Mapping[Solution, str]:
    """Why kept solutions seem right by luck; where there is a reference, also if training did not ask."""
    if buffer.rules.added or buffer.problem.reference is None:
        return buffer.doubts
    return _spurious(audits_of(buffer))


def _spurious(audits: Mapping[Solution, Audit]) -> dict[Solution, str]:
    return {solution: one.reason for solution, one in audits.items() if one.verdict == "spurious"}


def audits_of(buffer: SolutionBuffer) -> Mapping[Solution, Audit]:
    """The self-sampled fully-correct solutions, each run with other numbers than the question's."""
    problem, language = buffer.problem, buffer.language
    if problem.reference is None:  # then only the others can say what is right
        return audit_together(problem, buffer.fully_correct, language)
    own = (solution for solution in buffer.fully_correct if solution != problem.reference)
    return {solution: audit(problem, solution, language) for solution in own}


def audit_together(
    problem: Problem, solutions: Sequence[Solution], language: Language
) -> Mapping[Solution, Audit]:
    """What right solutions of a problem say about each other when the question's numbers are changed.

    One with a number, or a text of a query, that stands nowhere in the question is doubted. The others are
    grouped by what they answer under changed numbers: the largest group is believed; if several are, nobody
    can tell.
    """
    found: dict[Solution, Audit] = {}
    answers: dict[Solution, tuple[Any, ...]] = {}
    for solution in solutions:
        if strange := strange_literals(solution, problem.question, language):
            found[solution] = Audit("spurious", _from_nowhere(strange))
        else:
            answers[solution] = signature(problem, solution, language)
    # Lucky programs rarely agree with each other on other numbers; right ones always do.
    sizes = Counter(answers.values())
    largest = max(sizes.values(), default=0)
    is_clear = list(sizes.values()).count(largest) == 1
    for solution, answer in answers.items():
        found[solution] = _belief(sizes[answer], largest, is_clear)
    return {solution: found[solution] for solution in solutions}


def _belief(size: int, largest: int, is_clear: bool) -> Audit:
    if size < largest:
        return Audit("spurious", f"{largest} others answer differently when numbers or rows are changed")
    if largest and not is_clear:
        return Audit("undecided", "as many others answer differently when numbers or rows are changed")
    if size <= 1:
        return Audit("undecided", "there is neither a reference nor another solution to compare with")
    return Audit("confirmed")


def _from_nowhere(strange: Sequence[float | str]) -> str:
    """Why a solution is doubted that has such literals."""
    return f"{clipped(', '.join(map(str, strange)))} stands nowhere in the question"
