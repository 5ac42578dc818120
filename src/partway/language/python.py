"""Python, the language of the paper: one step per top-level statement, and a variable that is the answer.

The package `straightline` runs straight-line arithmetic; a folder around the method adds a sandbox for
other programs. Known programs are not run again: traces are remembered by text, up to a number of bytes.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol

import straightline
from partway import registry
from partway.errors import ConfigError, SandboxError
from partway.language.language import (
    ABSOLUTE_TOLERANCE,
    RELATIVE_TOLERANCE,
    Attempt,
    Dedup,
    Instruction,
    Language,
    Trace,
    _is_second,
)
from partway.language.named import Checker, checker_of
from partway.problem import Problem
from partway.solution import ANSWER_VARIABLE, Solution, alpha_form
from straightline import BoundedCache, Execution, OneEach, StateMode, end_of_program

MAX_BYTES = 128 << 20
MAX_TRACE_BYTES = 256 << 10  # a larger one is cheaper to make again than to keep
STEP_BYTES = 450  # the objects around one step's text, state and number
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
            "help": "How states are compared: as multisets of values, as sets, or as texts, as in the "
            "authors' code (`strict`)."
        },
    )
    checker: str | Checker = field(
        default="default",
        metadata={
            "help": "What makes an answer right: `default` (or `close`), `exact`, or package.module:function."
        },
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
        _ = self._is_right  # refuses a checker or a tolerance that cannot be used

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


class Room(Protocol):
    """Runs programs, each a tuple of steps, whatever they do."""

    def __call__(
        self, programs: Sequence[tuple[str, ...]], *, until: str, second: bool = False
    ) -> list[Execution]:
        """One execution per program, which ends after its last step or the first that binds `until`.

        A second opinion comes from other processes with another layout of memory.
        """
        ...


def run_isolated(programs: Sequence[tuple[str, ...]], until: str = "") -> list[Execution]:
    """One execution per program, a tuple of steps each; none is remembered."""
    return _room()(programs, until=until, second=_is_second.get())


def _room() -> Room:
    """The room for programs that the interpreter does not cover."""
    found = registry.parts("rooms").get("isolated")
    if found is None:
        raise SandboxError(
            "a program with more than straight-line arithmetic needs the part 'sandbox'"
            + registry.missing_parts()
        )
    room: Room = found.load()
    return room


def trace_texts(texts: Sequence[str], state: StateMode, answer_variable: str) -> list[Trace]:
    """The traces of many texts, in order; what goes to the other room goes there in one batch."""
    memo = Memo() if _is_second.get() else _memos[state, answer_variable]
    known = list(map(memo.recall, texts))
    new = list(dict.fromkeys(text for text, found in zip(texts, known, strict=True) if found is None))
    elsewhere = partial(run_isolated, until=answer_variable)
    traces = straightline.trace_all(new, answer_variable, state, elsewhere)
    fresh = {text: Trace(Solution(one[0]), *one[1:]) for text, one in zip(new, traces, strict=True)}
    memo.remember(fresh)
    return [found or fresh[text] for text, found in zip(texts, known, strict=True)]


def forget() -> None:
    """Drop what is remembered of earlier programs."""
    _memos.clear()


class Memo:
    """Traces of earlier programs, by their text."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._traces = BoundedCache[str, Trace](max_bytes, size_of, MAX_TRACE_BYTES)
        self.recall = self._traces.get  # the trace of a program, if it is still known

    def remember(self, found: Mapping[str, Trace]) -> None:
        """Keep traces, but not of programs that ran out of time or memory, which next time may not."""
        put = self._traces.put
        for text, trace in found.items():
            if trace.failure is None:
                put(text, trace)
                # A data set's spelling is read once; from then on its problem is known by its canonical text.
                if (spelled := "\n".join(trace.solution.steps)) != text.rstrip("\n"):
                    put(spelled, trace)
            elif trace.failure.kind in ("error", "forbidden") and trace.failure.is_own:
                put(text, trace)

    def __len__(self) -> int:
        return len(self._traces)


def size_of(text: str, found: Trace) -> int:
    """About how many bytes a trace holds; never much less than it does."""
    states = found.states
    if type(found.changes) is OneEach:  # the usual program, whose last state is its longest
        return 2 * (len(text) + len(states) * len(states[-1])) + STEP_BYTES * (1 + len(states))
    texts = len(text) + sum(map(len, states))
    if not found.isolated:
        return 2 * texts + STEP_BYTES * (1 + len(states))  # its values are plain numbers
    values = (value[0] for changed in found.changes for value in changed.values() if value is not None)
    return 4 * texts + STEP_BYTES * (1 + len(states)) + _bytes_of_all(values)


def _bytes_of_all(values: Iterable[Any]) -> int:
    """Of values and all they hold; counting ends where the sum is too large to be kept anyway."""
    total = 0
    waiting = list(values)
    while waiting and total <= MAX_TRACE_BYTES:
        value = waiting.pop()
        total += sys.getsizeof(value) + 8
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            waiting += value
    return total


_memos: defaultdict[tuple[StateMode, str], Memo] = defaultdict(Memo)  # what else decides a trace
