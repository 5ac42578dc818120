"""partway: fine-tune language models on their own correct and partially-correct solutions.

The names below are the public API; `import partway` takes milliseconds.
"""

from __future__ import annotations

from partway.buffer import SolutionBuffer, Verdict
from partway.errors import PartwayError
from partway.language import (
    PYTHON,
    Failure,
    Language,
    PythonLanguage,
    State,
    Trace,
    is_correct,
    trace,
    trace_all,
)
from partway.problem import Problem
from partway.problems import load_problems
from partway.solution import EMPTY, Solution

__version__ = "0.1.0"

__all__ = [
    "EMPTY",
    "PYTHON",
    "Failure",
    "Language",
    "PartwayError",
    "Problem",
    "PythonLanguage",
    "Solution",
    "SolutionBuffer",
    "State",
    "Trace",
    "Verdict",
    "is_correct",
    "load_problems",
    "trace",
    "trace_all",
]
