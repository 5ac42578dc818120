"""Languages: what a step is, what state it reaches and when an answer is right (E, T and isCorrect)."""

from partway.language.language import Instruction, Language, Trace, is_correct
from partway.language.python import PYTHON, PythonLanguage, trace, trace_all
from straightline import Failure, State

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
