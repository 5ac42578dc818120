"""Python, the language of the paper: one step per top-level statement, and a variable that is the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from partway.errors import ConfigError
from partway.language.checkers import ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE, Checker, checker_of
from partway.language.language import Attempt, Dedup, Instruction, Language
from partway.language.tracing import Trace, trace_texts
from partway.problem import Problem
from partway.solution import ANSWER_VARIABLE, Solution, alpha_form
from straightline import StateMode, end_of_program

NO_PROBLEM = Problem("", "", None)  # for texts that belong to none


@dataclass(frozen=True)
class PythonLanguage(Language):
    """Python, one step per top-level statement; a solution ends where it assigns the answer variable.

    >>> language = PythonLanguage("result")
    >>> language.parse("n0 = 1; result = n0 + 1; n1 = 5").steps
    ('n0 = 1', 'result = n0 + 1')
    >>> problem = Problem("p", "1 + 1?", 2)
    >>> language.is_correct(problem, language.trace_all([(problem, "result = 2.0")])[0])
    True
    """

    answer_variable: str = field(
        default=ANSWER_VARIABLE, metadata={"help": "The variable whose value is the answer."}
    )
    state: StateMode = field(
        default="multiset",
        metadata={
            "help": "When two states are equal: as multisets or sets of values, or as the authors' code "
            "has it."
        },
    )
    checker: str | Checker = field(
        default="default",
        metadata={"help": "What makes an answer right: default or close, exact, or package.module:function."},
    )
    checker_rel_tol: float = field(
        default=RELATIVE_TOLERANCE, metadata={"help": "Relative tolerance of `default` and `close`."}
    )
    checker_abs_tol: float = field(
        default=ABSOLUTE_TOLERANCE, metadata={"help": "Absolute tolerance of `default` and `close`."}
    )

    def __post_init__(self) -> None:
        if not self.answer_variable.isidentifier():
            raise ConfigError(f"answer_variable is {self.answer_variable!r}, expected the name of a variable")
        _ = self._is_right  # refuses what it cannot be made of

    @cached_property
    def _is_right(self) -> Checker:
        return checker_of(self.checker, self.checker_rel_tol, self.checker_abs_tol)

    @property
    def ends_with(self) -> str:
        """The variable whose assignment ends a solution; if empty, a solution ends with its text."""
        return self.answer_variable

    def parse(self, text: str) -> Solution:
        return Solution.parse(text, self.ends_with)

    def trace_all(self, pairs: Sequence[Attempt]) -> list[Trace]:
        # A program does the same for all problems, so equal texts are run once.
        return trace_texts([text for _, text in pairs], self.state, self.ends_with)

    def is_correct(self, problem: Problem, trace: Trace) -> bool:
        return trace.has_answer and self._is_right(trace.answer, problem.answer)

    def form(self, solution: Solution, dedup: Dedup) -> Solution:
        if dedup == "ast":
            return solution
        return alpha_form(solution, self.ends_with, numbers=dedup == "spelling")

    def end(self, text: str) -> int | None:
        variable = self.ends_with
        return end_of_program(text, variable) if variable and variable in text else None

    @property
    def instruction(self) -> Instruction:
        return Instruction("Python", f"assigns {self.answer_variable!r}", fence="python")


PYTHON = PythonLanguage()


def trace(solution: Solution | str, language: Language = PYTHON, problem: Problem = NO_PROBLEM) -> Trace:
    """Run a solution step by step: one state per step up to the first that fails, and the failure if any.

    `problem` is what it is to solve, for languages whose programs are run against something.

    >>> trace("n0 = 10\\nt0 = n0 * 2\\nanswer = t0 / 0").states
    ('10', '10, 20')
    """
    return trace_all([solution], language, problem)[0]


def trace_all(
    solutions: Sequence[Solution | str], language: Language = PYTHON, problem: Problem = NO_PROBLEM
) -> list[Trace]:
    """The traces of many solutions of one problem, in order."""
    return language.trace_all([(problem, str(solution)) for solution in solutions])
