"""Errors for mistakes that a user can make; each message is one line: what, where, what to try.

    PartwayError
    ├── SolutionError      text that is not a solution
    ├── ProblemError       a problem, or a file of problems, that cannot be used
    ├── ConfigError        an unknown key, a wrong type, an impossible combination
    │   └── CodeError      code that a setting names and that is missing, or must not run
    ├── ModelError         a model or tokenizer that cannot be loaded or used
    ├── EngineError        a remote model that does not answer as it should
    ├── RunError           a run directory that cannot be written, read or resumed
    └── SandboxError       no room in which general programs could be run safely

A sampled solution that crashes or loops is data, never one of these: see `Trace.failure`.
"""

import difflib
from collections.abc import Iterable


class PartwayError(Exception):
    """The root of everything partway raises on purpose; the command line prints it on one line."""


class SolutionError(PartwayError):
    """Text that does not parse as a solution; carries where."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class ProblemError(PartwayError):
    """A problem, or a file of problems, that cannot be used."""


class ConfigError(PartwayError):
    """An unknown key, a wrong type or an impossible combination of settings."""


class CodeError(ConfigError):
    """Code that a setting names and that cannot be imported, or must not be."""


class ModelError(PartwayError):
    """A model or tokenizer that cannot be loaded or used."""


class EngineError(PartwayError):
    """A remote model that does not answer as it should."""


class RunError(PartwayError):
    """A run directory that cannot be written, read or resumed."""


class SandboxError(PartwayError):
    """No room in which general programs could be run safely."""


def one_line(said: object, lines: int | None = None) -> str:
    """What an error of another library says, or the first `lines` of it, as a part of a sentence.

    >>> one_line(ValueError("no such file:\\n  a.txt.")), one_line(KeyError()), one_line("a\\nb", lines=1)
    ('no such file: a.txt', 'KeyError', 'a')
    """
    told = str(said).strip().splitlines()[:lines]
    return " ".join(" ".join(told).split()).rstrip(" .:") or type(said).__name__


def visible(text: str, kept: str = "\n") -> str:
    r"""A text with its control characters spelled out, except `kept` ones, so that no terminal acts on them.

    >>> visible("n0 = '\x1b[2J'\nn1 = 2")
    "n0 = '\\x1b[2J'\nn1 = 2"
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in kept else repr(sign)[1:-1] for sign in text)


def shown(value: object, most: int = 60) -> str:
    """A value in a message: also one of a million items, or a number that Python will not spell.

    >>> shown("a" * 9, 4)
    "'aaa..."
    """
    try:
        return clipped(repr(value), most)
    except (ValueError, RecursionError):
        return f"{type(value).__name__} of great size"


def clipped(text: str, most: int = 200) -> str:
    """The beginning of a text that may be long.

    >>> clipped("n0 = 12", 4)
    'n0 =...'
    """
    return text if len(text) <= most else f"{text[:most]}..."


def suggestion(word: str, words: Iterable[str], cutoff: float = 0.6) -> str:
    """Asks whether the nearest of `words` was meant; an empty text if none is near.

    >>> suggestion("fsc", ["none", "fcs"])
    "; did you mean 'fcs'?"
    """
    close = difflib.get_close_matches(word, words, n=1, cutoff=cutoff)
    return f"; did you mean '{close[0]}'?" if close else ""
