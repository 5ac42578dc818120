"""Mistakes a user can make, each with a one-line message: what, where, what to try.

    PartwayError
    ├── SolutionError      text that is no solution
    ├── ProblemError       a problem, or a file of problems, that cannot be used
    ├── ConfigError        an unknown key, a wrong type, an impossible combination
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


class ModelError(PartwayError):
    """A model or tokenizer that cannot be loaded or used."""


class EngineError(PartwayError):
    """A remote model that does not answer as it should."""


class RunError(PartwayError):
    """A run directory that cannot be written, read or resumed."""


class SandboxError(PartwayError):
    """No room in which general programs could be run safely."""


def suggestion(word: str, words: Iterable[str], cutoff: float = 0.6) -> str:
    """The question whether the nearest of `words` was meant; nothing if none is near.

    >>> suggestion("fsc", ["none", "fcs"])
    "; did you mean 'fcs'?"
    """
    close = difflib.get_close_matches(word, words, n=1, cutoff=cutoff)
    return f"; did you mean '{close[0]}'?" if close else ""
