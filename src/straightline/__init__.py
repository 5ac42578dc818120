"""Straight-line Python, parsed and run step by step: what each step changed and what state it reached."""

from straightline.arithmetic import NotCovered
from straightline.caching import BoundedCache
from straightline.parsing import Parsed, end_of_program, longest_parsed, parse, parse_tree
from straightline.renaming import renamed
from straightline.traces import Changed, Execution, Failure, FailureKind, OneEach, Trace
from straightline.tracing import Room, trace, trace_all
from straightline.values import State, StateMode, canonical, spelled

__all__ = [
    "BoundedCache",
    "Changed",
    "Execution",
    "Failure",
    "FailureKind",
    "NotCovered",
    "OneEach",
    "Parsed",
    "Room",
    "State",
    "StateMode",
    "Trace",
    "canonical",
    "end_of_program",
    "longest_parsed",
    "parse",
    "parse_tree",
    "renamed",
    "spelled",
    "trace",
    "trace_all",
]
