"""Read and write problems: partway's own layout is read here, other layouts by a folder that adds them."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from partway import registry
from partway.errors import ConfigError, ProblemError
from partway.files import atomic_writer, parse_json
from partway.language import PYTHON, Language
from partway.problem import Problem, problem_line, problem_of

ProblemSource: TypeAlias = str | os.PathLike[str] | Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class BadRow:
    """What is wrong with one row of a file, by its line or, where rows have none, its number from 1."""

    file: str
    line: int
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.field}: {self.reason}"


@dataclass(frozen=True)
class Checked:
    """The usable problems of a source and what is wrong with its other rows, in the order of the rows."""

    problems: list[Problem]
    bad_rows: list[BadRow]


@contextmanager
def collecting_later() -> Iterator[None]:
    """Collect no garbage while many objects are made that all stay: that would take a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read_problems(
    source: ProblemSource, *, language: Language = PYTHON, columns: str | Mapping[str, str] | None = None
) -> Checked:
    """Everything that `load_problems` would return or complain about."""
    added = registry.parts("problems").get("files")
    read = _own_layout if added is None else added.load()
    checked: Checked = read(source, language=language, columns=columns)
    return checked


def load_problems(
    source: ProblemSource, *, language: Language = PYTHON, columns: str | Mapping[str, str] | None = None
) -> list[Problem]:
    """The problems of a file, a data set of the Hub, a pandas or Hugging Face table, or a list of dicts.

    `columns` says where question, answer, solution, context and id are, if the layout is not a known one.

    >>> load_problems([{"question": "10 ml for each of 2 wheels?", "answer": "20 "}])[0].answer
    20
    >>> load_problems([{"q": "2 and 2?", "is": 4}], columns={"question": "q", "answer": "is"})[0].answer
    4
    """
    checked = read_problems(source, language=language, columns=columns)
    if checked.bad_rows:
        first, others = checked.bad_rows[0], len(checked.bad_rows) - 1
        more = f" (and {others} more)" if others else ""
        see = f"partway data check {first.file}" if isinstance(source, str | os.PathLike) else "read_problems"
        raise ProblemError(f"{first}{more}; see everything with: {see}")
    return checked.problems


def write_problems(path: str | os.PathLike[str], problems: Iterable[Problem]) -> None:
    """Write problems as JSONL, whole or not at all; `load_problems` gives equal ones back."""
    with atomic_writer(path) as stream:
        stream.writelines(map(problem_line, problems))


def _own_layout(source: ProblemSource, *, language: Language, columns: object) -> Checked:
    """Rows as `write_problems` writes them, with an id, a question, an answer and perhaps a solution."""
    if columns:
        raise ConfigError(f"columns is {columns}, but only partway's own are known{registry.missing_parts()}")
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else "rows"
    try:
        if isinstance(source, str | os.PathLike):
            source = map(parse_json, filter(str.strip, Path(source).read_text(encoding="utf-8").split("\n")))
        return Checked([problem_of(row, language.parse) for row in source], [])
    except OSError as error:
        raise ProblemError(f"{name}: cannot be read ({error.strerror})") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProblemError(
            f"{name}: not partway's own layout ({error!r}){registry.missing_parts()}"
        ) from None
