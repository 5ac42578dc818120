"""Running solutions: Solution -> Trace, in two rooms.

Straight-line arithmetic is evaluated by an interpreter in this process; everything else goes to
isolated workers. Neither gives a program any of this process's powers.
"""

from partway.execution.answers import is_correct
from partway.execution.traces import Failure, Trace
from partway.execution.tracing import trace, trace_all
from partway.execution.values import State

__all__ = ["Failure", "State", "Trace", "is_correct", "trace", "trace_all"]
