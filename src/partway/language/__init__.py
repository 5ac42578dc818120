"""Running solutions: Solution -> Trace, in two rooms.

Straight-line arithmetic is evaluated by an interpreter in this process; everything else goes to
isolated workers. Neither gives a program any of this process's powers.
"""

from partway.language.checkers import is_correct
from partway.language.language import Instruction, Language
from partway.language.python import PYTHON, PythonLanguage, trace, trace_all
from partway.language.traces import Failure, Trace
from partway.language.values import State

__all__ = [
    "PYTHON",
    "Failure",
    "Instruction",
    "Language",
    "PythonLanguage",
    "State",
    "Trace",
    "is_correct",
    "trace",
    "trace_all",
]
