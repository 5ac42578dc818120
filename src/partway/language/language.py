"""The language of the programs, as one object: the paper's E, T and isCorrect.

`Language` says what a step is, where a solution ends, what state each step reaches and when an answer is
right; all other code asks it. Another language, checker or notion of equal states is one new class, which
must define two methods.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeAlias, runtime_checkable

from partway import registry
from partway.errors import SolutionError, shown
from partway.problem import Problem
from partway.solution import Solution
from straightline import Changed, Failure, State, canonical

Attempt: TypeAlias = tuple[Problem, str]  # a problem and a text that is to solve it
Dedup = Literal["ast", "alpha", "spelling"]

ABSOLUTE_TOLERANCE = 1e-4
RELATIVE_TOLERANCE = 1e-9


class Trace(NamedTuple):  # not a dataclass: a frozen one takes a microsecond longer to make
    """A solution with the state after each executed step and the failure, if any.

    `solution` holds every step that parsed, also those after the failure. `outcome` is `(answer,)` if the
    last step gave one.
    """

    solution: Solution
    states: tuple[State, ...]
    changes: Sequence[Changed]
    failure: Failure | None = None
    outcome: tuple[Any] | None = None
    isolated: bool = False  # run by an isolated worker; a program might have forged what it reports

    @property
    def variables(self) -> dict[str, Any]:
        """Names and values after the last executed step."""
        held = {name: value for changed in self.changes for name, value in changed.items()}
        return {name: value[0] for name, value in held.items() if value is not None}

    @property
    def has_answer(self) -> bool:
        """Whether the last executed step gave an answer and nothing failed."""
        return self.failure is None and self.outcome is not None

    @property
    def answer(self) -> Any:
        """What the solution answers, None if nothing."""
        return None if self.outcome is None else self.outcome[0]

    def longest_known_prefix(self, known: Container[State]) -> int:
        """How many steps the longest beginning has that reaches a known state; 0 if none does.

        The step that gives the (wrong) answer is not part of a beginning.
        """
        # Longest first; `has_answer` takes off the last step where it gave an answer.
        lengths = range(len(self.states) - self.has_answer, 0, -1)
        return next((n for n in lengths if self.states[n - 1] and self.states[n - 1] in known), 0)

    def prefixes(self) -> Iterator[tuple[Solution, State]]:
        """Every executed prefix with the state it reaches, shortest first."""
        for length, state in enumerate(self.states, 1):
            yield self.solution.prefix(length), state

    def _repr_html_(self) -> str | None:
        """The trace as a notebook shows it: each step with the state it reaches."""
        return registry.view("trace", self)


@dataclass(frozen=True)
class Instruction:
    """How a model is asked for a program, and which texts show that the program has ended.

    >>> Instruction("SQL", "selects the answer", comment="-- ", fence="sql").words
    'Solve the problem with a short SQL program, one step per line, that selects the answer.'
    """

    name: str  # the language, as people call it
    ending: str = "gives an answer"  # what a solution does at its end, as a verb
    comment: str = "# "  # what begins a comment: a question is one, to models without a chat template
    fence: str = ""  # the word after ``` where a block of code opens

    @property
    def words(self) -> str:
        """What a chat model is told before the question."""
        return f"Solve the problem with a short {self.name} program, one step per line, that {self.ending}."

    @property
    def stops(self) -> tuple[str, ...]:
        """Texts that begin another problem: a comment."""
        return (f"\n{self.comment.strip()}",)


class Language(Protocol):
    """A language has to define `parse` and `trace_all`; the other methods do what the paper says.

    The fields of a language that is a frozen dataclass are its settings, which a config may give.
    """

    metrics: ClassVar[tuple[str, ...]] = ()  # what its evaluations also list, as package.module:name

    def parse(self, text: str) -> Solution:
        """The solution in `text`; SolutionError if it does not parse."""
        ...

    def trace_all(self, pairs: Sequence[Attempt]) -> list[Trace]:
        """T: for each text one state per step up to the first that fails, the answer and the failure, if any.

        Each text stands beside the problem that it is to solve, whose `context` it may be run against.
        States are texts, equal exactly when the states are; an empty one never counts as known.
        """
        ...

    def is_correct(self, problem: Problem, trace: Trace) -> bool:
        """Whether a traced solution gives the right answer."""
        return trace.has_answer and is_correct(trace.answer, problem.answer)

    def confirms(self, problem: Problem, trace: Trace) -> bool:
        """Whether a solution that is about to be kept takes the same states and answer when it runs again.

        A program that an isolated worker ran is run again in a fresh process of a worker with another layout:
        other addresses, other hash seeds, another recorder. If its trace depends on any of these, by accident
        or by intent, it is not a solution. A program that was interpreted is not run again.
        """
        if not trace.isolated:
            return True
        with independently():
            (again,) = self.trace_all([(problem, trace.solution.text)])
        if again.states[: len(trace.states)] != trace.states:
            return False
        return not trace.has_answer or (
            again.has_answer and canonical(again.answer) == canonical(trace.answer)
        )

    def flaw(self, problem: Problem) -> str | None:
        """Why solutions of a problem cannot be checked; None if they can."""
        return None

    def form(self, solution: Solution, dedup: Dedup) -> Solution:
        """What duplicates have in common: their syntax, up to names or also spellings of numbers."""
        return solution

    def question(self, problem: Problem) -> str:
        """What a model reads of a problem: its question, with what else it needs to know of the context."""
        return problem.question

    def fitted(self, context_length: int, prompt: Callable[[str], Sequence[int]]) -> Self:
        """This language, which may shorten what a model reads to fit; `prompt` gives a text's tokens."""
        return self

    def end(self, text: str) -> int | None:
        """Where in `text` the solution ends, after a closed line; None if it goes on.

        It is called at the end of every line that a model writes, so it should be quick.
        """
        return None

    @property
    def instruction(self) -> Instruction:
        """How a model is asked for a program."""
        return Instruction(type(self).__name__)


@runtime_checkable
class Tested(Protocol):
    """A language in which the answer of a problem is a list of assertions: a solution has to pass them."""

    def tests(self, problem: Problem) -> list[str] | None:
        """The assertions; None where a problem has none."""


def tests_of(problem: Problem, language: Language) -> list[str] | None:
    """The assertions that a solution has to pass; None where its answer is compared instead."""
    return language.tests(problem) if isinstance(language, Tested) else None


def is_correct(
    answer: Any,
    expected: Any,
    *,
    rel_tol: float = RELATIVE_TOLERANCE,
    abs_tol: float = ABSOLUTE_TOLERANCE,
) -> bool:
    """Numbers are close, values of other kinds are canonically equal; a bool or a string is not a number.

    >>> is_correct(2, 2.00001), is_correct("2", 2), is_correct(True, 1), is_correct([1, 2.0], (1.0, 2))
    (True, False, False, True)
    """
    if not is_number(answer) or not is_number(expected):
        return is_number(answer) == is_number(expected) and canonical(answer) == canonical(expected)
    try:
        return math.isclose(answer, expected, rel_tol=rel_tol, abs_tol=abs_tol)
    except OverflowError:  # integers beyond floats are compared exactly
        return bool(answer == expected)
    except ValueError:  # a signalling NaN
        return False


def is_number(value: Any) -> bool:
    """Whether `value` is a real number: not a bool, not a complex."""
    return isinstance(value, (int, float, Fraction, Decimal)) and not isinstance(value, bool)


def flaw_of(problem: Problem, trace: Trace, language: Language) -> str | None:
    """What is wrong with a problem's traced reference, None if it executes to the answer."""
    if trace.failure is not None:
        return f"step {trace.failure.step + 1} fails: {trace.failure.message}"
    if (flaw := language.flaw(problem)) is not None:
        return f"cannot be checked: {flaw}"
    if language.is_correct(problem, trace):
        return None
    if trace.has_answer and tests_of(problem, language) is None:
        return f"gives {shown(trace.answer)}, but the answer is {shown(problem.answer)}"
    return f"never {language.instruction.ending}"


def form_of(text: str, language: Language) -> Solution | str:
    """The solution in `text`, or the text itself if it does not parse."""
    try:
        return language.parse(text)
    except SolutionError:
        return text


@contextmanager
def independently() -> Iterator[None]:
    """Programs that are traced inside run again, in processes that lay out their memory differently."""
    before = _is_second.set(True)
    try:
        yield
    finally:
        _is_second.reset(before)


_is_second: ContextVar[bool] = ContextVar("_is_second", default=False)  # within `independently`
