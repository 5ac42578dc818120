"""A language in which programs are written, as one value: the paper's E, T and isCorrect.

`Language` says what a step is, where text ends, what state each step reaches, when an answer is right and
which beginning of a sample is known to be right. All other code asks such a value. Another language, another
checker or another notion of equal states is one new class, which has defaults for all but two methods.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias

from partway import registry
from partway.errors import ConfigError, SolutionError, shown, suggestion
from partway.language.checkers import is_correct
from partway.language.tracing import Trace, independently
from partway.problem import Problem
from partway.registry import import_path, imported, is_refused, refused
from partway.solution import Solution
from straightline import State, canonical

LANGUAGES = {  # the method's own; folders around it add others
    "python": registry.Part(
        "partway.language.python:PythonLanguage", "Python, whose answer is the value of a variable."
    )
}
Attempt: TypeAlias = tuple[Problem, str]  # a problem and a text that is to solve it
Dedup = Literal["ast", "alpha", "spelling"]


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
        """Why no solution of a problem can be checked; None if it can."""
        return None

    def tests(self, problem: Problem) -> list[str] | None:
        """The assertions that a solution has to pass; None where its answer is compared instead."""
        return None

    def longest_known_prefix(self, trace: Trace, known: Container[State]) -> int:
        """How many steps the longest beginning has that reaches a known state; 0 if none does.

        The step that gives the (wrong) answer is not part of a beginning.
        """
        # Longest first; `has_answer` takes off the last step where it gave an answer.
        lengths = range(len(trace.states) - trace.has_answer, 0, -1)
        return next((n for n in lengths if trace.states[n - 1] and trace.states[n - 1] in known), 0)

    def form(self, solution: Solution, dedup: Dedup) -> Solution:
        """What duplicates have in common: their syntax, up to names or also spellings of numbers."""
        return solution

    def question(self, problem: Problem) -> str:
        """What a model reads of a problem: its question, with what else it needs to know of the context."""
        return problem.question

    def fitted(self, context_length: int) -> Self:
        """The language that shortens, where it can, what models with so many tokens of context read."""
        return self

    def variations(self, problem: Problem) -> Sequence[Problem]:
        """The same problem in other contexts, where a solution that is right by luck shows itself."""
        return ()

    def end(self, text: str) -> int | None:
        """Where in `text` the solution ends, after a closed line; None if only its writer can end it.

        It is called at the end of every line that a model writes, so it should be quick.
        """
        return None

    @property
    def instruction(self) -> Instruction:
        """How a model is asked for a program."""
        return Instruction(type(self).__name__)

    def settings(self) -> dict[str, Any]:
        """The keys of a config from which `language_of` makes this value again; functions by their place."""
        own = {f.name: getattr(self, f.name) for f in fields(schema_of(type(self)))}
        args = {name: import_path(value) if callable(value) else value for name, value in own.items()}
        return {"language": name_of(type(self)), "language_args": args}


@dataclass(frozen=True)
class Unread(Language):
    """In place of a language whose code is not run: lines are steps, and nothing can be traced."""

    path: str

    def parse(self, text: str) -> Solution:
        return Solution(tuple(line for line in text.splitlines() if line.strip()))

    def trace_all(self, pairs: Sequence[Attempt]) -> list[Trace]:
        raise refused(self.path, "language")

    @property
    def instruction(self) -> Instruction:
        raise refused(self.path, "language")


@dataclass(frozen=True)
class NoSettings:
    """The settings of a language that has none."""


def language_class(name: str) -> Any:
    """The language that the key `language` names: one that is known, or a class as `package.module:name`."""
    if ":" in name:
        return imported(name, "language")
    found = registry.part("languages", name, built_in=LANGUAGES)
    return found.load() if isinstance(found, registry.Part) else found


def schema_of(language: Any) -> Any:
    """The dataclass whose fields are the settings of a class of languages."""
    return language if is_dataclass(language) else NoSettings


def name_of(language: type) -> str:
    """What the key `language` calls a class."""
    path = import_path(language)
    known = LANGUAGES | registry.parts("languages")
    return next((name for name, part in known.items() if part.where == path), path)


def language_of(settings: Mapping[str, Any]) -> Language:
    """The language that `language` and `language_args` of a config describe; what is missing has a default.

    The settings of the language may also stand beside the others.
    """
    name = settings.get("language") or "python"
    if ":" in name and is_refused(name, "language"):
        return Unread(name)
    made = language_class(name)
    names = [f.name for f in fields(schema_of(made))]
    given = dict(settings.get("language_args") or {})
    for key in given:
        if key not in names:
            hint = suggestion(key, names) or f"; it has {', '.join(names) or 'none'}"
            raise ConfigError(f"{key} is not a setting of the language {name}{hint}")
    beside = {key: settings[key] for key in names if key in settings}
    language: Language = made(**beside | given)
    return language


def flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with those of the language among them."""
    others = {key: value for key, value in settings.items() if key != "language_args"}
    return others | dict(settings.get("language_args") or {})


def with_args(settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with other ones for the language; those that are None stay."""
    said = {key: value for key, value in given.items() if value is not None}
    return {**settings, "language_args": dict(settings.get("language_args") or {}) | said}


def flaw_of(problem: Problem, trace: Trace, language: Language) -> str | None:
    """What is wrong with a problem's traced reference, None if it executes to the answer."""
    if trace.failure is not None:
        return f"step {trace.failure.step + 1} fails: {trace.failure.message}"
    if (flaw := language.flaw(problem)) is not None:
        return f"cannot be checked: {flaw}"
    if language.is_correct(problem, trace):
        return None
    if trace.has_answer and language.tests(problem) is None:
        return f"gives {shown(trace.answer)}, but the answer is {shown(problem.answer)}"
    return f"never {language.instruction.ending}"


def form_of(text: str, language: Language) -> Solution | str:
    """The solution in `text`, or the text itself if it does not parse."""
    try:
        return language.parse(text)
    except SolutionError:
        return text
