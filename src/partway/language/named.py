"""Finds the language and the checker that the settings name; a checker says which answers are right.

A checker is any callable `(value, answer) -> bool`. A config names one of these, or a function of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any, TypeAlias

from partway import registry
from partway.errors import ConfigError, suggestion
from partway.language.language import Attempt, Instruction, Language, Trace, is_correct
from partway.registry import import_path, imported, is_refused, refused
from partway.solution import Solution
from straightline import canonical

Checker: TypeAlias = Callable[[Any, Any], bool]

LANGUAGES = {  # the method's own; folders around it add others
    "python": registry.Part(
        "partway.language.python:PythonLanguage", "Python, whose answer is the value of a variable."
    )
}


@dataclass(frozen=True)
class Unread(Language):
    """Stands for a language whose code must not run: lines are steps, and nothing can be traced."""

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
    """Settings, with those of the language beside the others."""
    others = {key: value for key, value in settings.items() if key != "language_args"}
    return others | dict(settings.get("language_args") or {})


def with_args(settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with other ones for the language; those that are None stay."""
    said = {key: value for key, value in given.items() if value is not None}
    return {**settings, "language_args": dict(settings.get("language_args") or {}) | said}


def settings_of(language: Language) -> dict[str, Any]:
    """The keys of a config from which `language_of` makes a language again; functions by their place."""
    own = {f.name: getattr(language, f.name) for f in fields(schema_of(type(language)))}
    args = {name: import_path(value) if callable(value) else value for name, value in own.items()}
    return {"language": name_of(type(language)), "language_args": args}


def exact(value: Any, answer: Any) -> bool:
    """Whether both are the same value in states, digit by digit: 2 is 2.0, but 0.3333 is not a third.

    >>> exact(2, 2.0), exact(0.3333, 1 / 3), exact([1, 2], (1, 2))
    (True, False, True)
    """
    return canonical(value) == canonical(answer)


def checker_of(checker: str | Checker, rel_tol: float, abs_tol: float) -> Checker:
    """The checker that a setting names; the tolerances are for `default` and `close`, which are the same.

    >>> checker_of("close", 0.01, 0.0)(101, 100), checker_of("default", 1e-9, 1e-4)(101, 100)
    (True, False)
    """
    for name, tolerance in (("checker_rel_tol", rel_tol), ("checker_abs_tol", abs_tol)):
        if not tolerance >= 0:
            raise ConfigError(f"{name} is {tolerance}, expected 0 or more")
    if not isinstance(checker, str):
        return checker
    if checker in ("default", "close"):
        return partial(is_correct, rel_tol=rel_tol, abs_tol=abs_tol)
    if checker == "exact":
        return exact
    if ":" not in checker:
        others = ", ".join(registry.parts("languages"))
        hint = f"; other languages check in ways of their own: {others}" if others else ""
        raise ConfigError(
            f"checker is {checker!r}, expected default, close, exact or package.module:function{hint}"
        )
    if is_refused(checker, "checker"):
        return partial(_unasked, checker)
    found: Checker = imported(checker, "checker")
    if not callable(found):
        raise ConfigError(f"checker is {checker!r}, expected a function (value, answer) -> bool")
    return found


def _unasked(checker: str, value: Any, answer: Any) -> bool:
    """Stands for a checker whose code must not run."""
    raise refused(checker, "checker")
