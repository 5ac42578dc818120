"""Running solutions: Solution -> Trace, in two rooms.

Straight-line arithmetic is evaluated by an interpreter in this process; everything else goes to
isolated workers. Neither gives a program any of this process's powers.
"""

from partway.execution.checkers import is_correct
from partway.execution.programs import PYTHON, Programs, PythonPrograms, trace, trace_all
from partway.execution.traces import Failure, Trace
from partway.execution.values import State

__all__ = [
    "PYTHON",
    "Failure",
    "Programs",
    "PythonPrograms",
    "State",
    "Trace",
    "is_correct",
    "trace",
    "trace_all",
]
