"""The language programs are written in and its rules, as one value: the paper's E, T and isCorrect.

`Programs` says what a step is, how text ends, what state each step reaches, when an answer is right and which
beginning of a sample is known to be right. Everything else takes such a value and asks it. Another checker,
another notion of equal states or another language is one new class; what it does not say is said here.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from partway.errors import ConfigError, SolutionError
from partway.execution.checkers import (
    DEFAULT,
    TESTS,
    Checker,
    checker_of,
    checker_settings,
    is_correct,
    tests_flaw,
    tests_of,
)
from partway.execution.completion import Match, Route, Values, completion_of, route_of
from partway.execution.forms import Written, end_of_function, read_written, written_on
from partway.execution.tested import Function, read_function, unopened
from partway.execution.traces import Trace
from partway.execution.tracing import confirmed, trace_texts
from partway.execution.values import State, StateMode, canonical, strict
from partway.execution.variation import Audit, audit, signature, strange_literals
from partway.importing import import_path, imported
from partway.parsing import end_of_solution
from partway.solution import ANSWER_VARIABLE, Solution, alpha_form

SolutionEnd = Literal["first_assignment", "end_of_text"]
ProgramForms = Literal["steps", "written"]


class Programs(Protocol):
    """A language: `parse` and `trace_all` must be written; the rest means what the paper says."""

    def parse(self, text: str) -> Solution:
        """The solution that `text` is; SolutionError if it is none."""
        ...

    def trace_all(self, texts: Sequence[str]) -> list[Trace]:
        """T: for each text one state per step up to the first that fails, the answer and the failure, if any.

        States are texts, equal exactly when the states are; an empty one never counts as known.
        """
        ...

    def is_correct(self, trace: Trace, answer: Any) -> bool:
        """Whether a traced solution gives the right answer."""
        return trace.has_answer and is_correct(trace.answer, answer)

    def entered(self, trace: Trace, answer: Any) -> Trace:
        """The trace by which a buffer compares states, where that depends on what the answer should be."""
        return trace

    def confirms(self, trace: Trace) -> bool:
        """Whether a trace whose solution is about to be kept can be relied on."""
        return True

    def answer_flaw(self, answer: Any) -> str | None:
        """Why no solution could ever be checked against `answer`, None if it can."""
        return None

    def longest_known_prefix(self, trace: Trace, known: Container[State]) -> int:
        """How many steps the longest beginning has that reaches a known state; 0 if none does.

        The step that gives the (wrong) answer is no part of a beginning.
        """
        # Longest first; `has_answer` takes off the last step where it gave an answer.
        lengths = range(len(trace.states) - trace.has_answer, 0, -1)
        return next((n for n in lengths if trace.states[n - 1] and trace.states[n - 1] in known), 0)

    def renamed(self, solution: Solution) -> Solution:
        """The form shared by solutions that differ in nothing but the names of their variables."""
        return solution

    def respelled(self, solution: Solution) -> Solution:
        """The form shared by solutions that differ only in those names and in how numbers are spelled."""
        return self.renamed(solution)

    def route(self, trace: Trace) -> Route | None:
        """What the beginnings of a right solution are still needed for; None if that cannot be known."""
        return None

    def completed(self, trace: Trace, values: Values, match: Match) -> Solution | None:
        """A beginning, with these values, completed as the match says; None if it cannot be."""
        return None

    def audit(self, reference: Solution, solution: Solution, question: str) -> Audit:
        """Whether a right solution is right by luck: does it answer as the reference for other numbers?"""
        return Audit("undecided", "programs of this language are not run with other numbers")

    def strange_literals(self, solution: Solution, question: str) -> tuple[float, ...]:
        """Numbers of a solution that come from nowhere."""
        return ()

    def signature(self, solution: Solution, question: str) -> tuple[Any, ...]:
        """What a solution answers for other numbers; solutions with equal ones do the same."""
        return ()

    def end(self, text: str) -> int | None:
        """Where in `text` the solution ends, behind a closed line; None if only its writer can end it."""
        return None

    def may_end(self, line: str) -> bool:
        """Whether a solution may end with this line: a quick look that spares `end` most of its work."""
        return False

    def spell(self, value: Any) -> str:
        """A value as states compare it."""
        return canonical(value)

    @property
    def state(self) -> StateMode:
        """Whether a state counts how often a value occurs; for those who show states."""
        return "multiset"

    @property
    def ending(self) -> str:
        """What a solution does to give its answer, as a verb: `assigns 'answer'`."""
        return "gives an answer"

    def settings(self) -> dict[str, Any]:
        """The keys of a config from which `programs_of` makes this value again."""
        return {"programs": import_path(type(self))}


@dataclass(frozen=True)
class PythonPrograms(Programs):
    """Python, one step per top-level statement; a solution ends where it assigns the answer variable.

    >>> programs = PythonPrograms("result")
    >>> programs.parse("n0 = 1; result = n0 + 1; n1 = 5").steps
    ('n0 = 1', 'result = n0 + 1')
    >>> programs.is_correct(programs.trace_all(["result = 2.0"])[0], 2)
    True
    """

    answer_variable: str = ANSWER_VARIABLE
    state: StateMode = "multiset"
    checker: Checker = DEFAULT
    solution_end: SolutionEnd = "first_assignment"
    program_forms: ProgramForms = "steps"

    def __post_init__(self) -> None:
        if not self.answer_variable.isidentifier():
            raise ConfigError(f"answer_variable is {self.answer_variable!r}, expected the name of a variable")

    @property
    def _ends_with(self) -> str:
        """The variable that ends a solution; where there is none, a solution ends with its text."""
        is_open = self.checker is TESTS or self.solution_end == "end_of_text"
        return "" if is_open else self.answer_variable

    @property
    def _ends_with_function(self) -> bool:
        """Whether the first function ends a solution; before one under test there may be others."""
        return self.program_forms == "written" and self.checker is not TESTS

    def parse(self, text: str) -> Solution:
        written = self._written(text)
        if written is not None and not written.is_cut:
            return Solution(written.steps)
        return Solution.parse(text, self._ends_with)

    def _written(self, text: str) -> Written | None:
        if self.program_forms == "steps":
            return None
        if self.checker is TESTS:
            function = self._function(text)
            return None if function is None else function.written
        return read_written(text, self.answer_variable)

    def _function(self, text: str) -> Function | None:
        return read_function(text, self.answer_variable)

    def _run_steps(self, solution: Solution) -> tuple[str, ...]:
        """What is run for the steps of a solution."""
        written = self._written(solution.text)
        return solution.steps if written is None else written.run

    def trace_all(self, texts: Sequence[str]) -> list[Trace]:
        if self.program_forms == "written":  # one by one, for each may be in another form
            return [self._trace_written(text) for text in texts]
        traces = trace_texts(texts, self.state, self._ends_with)
        return traces if self.solution_end == "first_assignment" else list(map(self._answered, traces))

    def _trace_written(self, text: str) -> Trace:
        if self.checker is TESTS and (function := self._function(text)) is not None:
            return unopened(function)
        written = self._written(text)
        if written is None:
            return replace(self, program_forms="steps").trace_all([text])[0]
        (trace,) = trace_texts([written.source], self.state, "")
        # As it was written: each step that was run stands for one of those.
        return self._answered(trace._replace(solution=Solution(written.steps[: len(trace.solution)])))

    def _answered(self, trace: Trace) -> Trace:
        """The trace with what the answer variable holds at the end, if everything ran."""
        variables = trace.variables
        if self.checker is TESTS or trace.failure is not None or self.answer_variable not in variables:
            return trace
        return trace._replace(outcome=(variables[self.answer_variable],))

    def is_correct(self, trace: Trace, answer: Any) -> bool:
        if self.checker is not TESTS:
            return trace.has_answer and self.checker(trace.answer, answer)
        if trace.failure is not None or not trace.solution.steps:
            return False
        # Tests are steps behind the solution, and fail as steps do.
        with_tests = "\n".join([*trace.solution.steps, *tests_of(answer)])
        return self.trace_all([with_tests])[0].failure is None

    def entered(self, trace: Trace, answer: Any) -> Trace:
        """The body of the function under test, run on the arguments of the first test.

        A function that cannot be run so keeps its steps without states: it is right or wrong as a whole. What
        an isolated worker said is confirmed here, where the arguments are known.
        """
        if self.checker is not TESTS or self.program_forms == "steps":
            return trace
        function = self._function(trace.solution.text)
        opened = None if function is None else function.opened(tests_of(answer))
        if opened is None:
            return trace
        (run,) = trace_texts([opened.source], self.state, "")
        found = opened.trace(run, self.answer_variable)
        # What passes its tests but fails when opened is right for reasons that its steps do not show.
        if found is None or (found.failure is not None and self.is_correct(trace, answer)):
            return trace
        if not confirmed(run, self.state, ""):
            return found._replace(states=(), changes=())
        return found._replace(isolated=False)

    def confirms(self, trace: Trace) -> bool:
        if self.program_forms == "steps" and self.solution_end == "first_assignment":
            return confirmed(trace, self.state, self._ends_with)
        run = Solution(self._run_steps(trace.solution))
        # No variable ends such a run, so there are only states to compare, the answer among them.
        return confirmed(trace._replace(solution=run, outcome=None), self.state, "")

    def answer_flaw(self, answer: Any) -> str | None:
        return tests_flaw(answer) if self.checker is TESTS else None

    def renamed(self, solution: Solution) -> Solution:
        return alpha_form(solution, self._ends_with)

    def respelled(self, solution: Solution) -> Solution:
        return alpha_form(solution, self._ends_with, numbers=True)

    def route(self, trace: Trace) -> Route | None:
        return route_of(trace, self.spell, self._run_steps(trace.solution))

    def completed(self, trace: Trace, values: Values, match: Match) -> Solution | None:
        written = self._written(trace.solution.text)
        run = trace.solution.steps if written is None else written.run
        rest = completion_of(run[: match.length], values, match, self.answer_variable)
        if rest is None:
            return None
        beginning = trace.solution.steps[: match.length]
        # The sample's own beginning stays as it is: it is what the model wrote.
        if self.program_forms == "written":
            block = None if written is None else written.block
            rest = written_on(beginning, block, rest, match.route.solution.steps[-1], self.answer_variable)
        return Solution((*beginning, *rest))

    def audit(self, reference: Solution, solution: Solution, question: str) -> Audit:
        if self.checker is TESTS:
            return Audit("undecided", "tests say what is right, not a number")
        return audit(reference, solution, question, self.trace_all, self.is_correct)

    def strange_literals(self, solution: Solution, question: str) -> tuple[float, ...]:
        return strange_literals(solution, question)

    def signature(self, solution: Solution, question: str) -> tuple[Any, ...]:
        return signature(solution, question, self.trace_all)

    def end(self, text: str) -> int | None:
        if self._ends_with_function and (end := end_of_function(text)) is not None:
            return end
        return end_of_solution(text, self._ends_with) if self._ends_with else None

    def may_end(self, line: str) -> bool:
        if self._ends_with_function and "return" in line:
            return True
        return bool(self._ends_with) and self._ends_with in line

    def spell(self, value: Any) -> str:
        return strict(value) if self.state == "strict" else canonical(value)

    @property
    def ending(self) -> str:
        return "passes its tests" if self.checker is TESTS else f"assigns {self.answer_variable!r}"

    def settings(self) -> dict[str, Any]:
        return {
            "answer_variable": self.answer_variable,
            "state": self.state,
            **checker_settings(self.checker),
            "solution_end": self.solution_end,
            "program_forms": self.program_forms,
        }


PYTHON = PythonPrograms()


def programs_of(settings: Mapping[str, Any]) -> Programs:
    """The programs that a config, or what `settings` gave, describes; keys that are missing have defaults."""
    if path := settings.get("programs"):
        made: Programs = imported(path, "programs")()
        return made
    return PythonPrograms(
        settings.get("answer_variable", ANSWER_VARIABLE),
        settings.get("state", "multiset"),
        checker_of(settings),
        settings.get("solution_end", "first_assignment"),
        settings.get("program_forms", "steps"),
    )


def trace(solution: Solution | str, programs: Programs = PYTHON) -> Trace:
    """Run a solution step by step: one state per step up to the first that fails, and the failure if any.

    >>> trace("n0 = 10\\nt0 = n0 * 2\\nanswer = t0 / 0").states
    ('10', '10, 20')
    """
    return trace_all([solution], programs)[0]


def trace_all(solutions: Sequence[Solution | str], programs: Programs = PYTHON) -> list[Trace]:
    """The traces of many solutions, in order."""
    return programs.trace_all([str(solution) for solution in solutions])


def flaw_of(trace: Trace, answer: Any, programs: Programs) -> str | None:
    """What is wrong with a traced reference, None if it executes to the answer."""
    if trace.failure is not None:
        return f"step {trace.failure.step + 1} fails: {trace.failure.message}"
    if (flaw := programs.answer_flaw(answer)) is not None:
        return f"cannot be checked: {flaw}"
    if programs.is_correct(trace, answer):
        return None
    if trace.has_answer:
        return f"gives {shown(trace.answer)}, but the answer is {shown(answer)}"
    return f"never {programs.ending}"


def unshown_tests(question: str, answer: Any, programs: Programs) -> list[str] | None:
    """The tests of a problem that its question does not show; None where answers are compared instead."""
    # A language that finds fault with None as an answer wants tests.
    if programs.answer_flaw(None) is None or tests_flaw(answer) is not None:
        return None
    return [test for test in tests_of(answer) if test not in question]


def form_of(text: str, programs: Programs) -> Solution | str:
    """The solution that `text` is; text that is none stands for itself."""
    try:
        return programs.parse(text)
    except SolutionError:
        return text


def shown(value: Any) -> str:
    """A value in a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
