"""partway: fine-tune language models on their own correct and partially-correct solutions.

The names below are the public API. What reads files is imported when first used, so that
`import partway` takes milliseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partway.buffer import SolutionBuffer, Verdict
from partway.errors import PartwayError
from partway.execution import (
    PYTHON,
    Failure,
    Programs,
    PythonPrograms,
    State,
    Trace,
    is_correct,
    trace,
    trace_all,
)
from partway.problem import Problem
from partway.solution import EMPTY, Solution

if TYPE_CHECKING:
    from partway.datasets import load_problems as load_problems

__version__ = "0.1.0"

__all__ = [
    "EMPTY",
    "PYTHON",
    "Failure",
    "PartwayError",
    "Problem",
    "Programs",
    "PythonPrograms",
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


def __getattr__(name: str) -> Any:
    if name == "load_problems":
        from partway.datasets import load_problems

        return load_problems
    raise AttributeError(f"module 'partway' has no attribute {name!r}")
