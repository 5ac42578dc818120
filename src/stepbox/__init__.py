"""Python programs, run step by step in isolated processes: what each step changed, or why it failed."""

from stepbox.pool import BoxReport, Limits, inspect, run, steps
from stepbox.process import RISK
from stepbox.results import BoxError, Execution, Failure, WeakBox
from stepbox.wire import Opaque

__all__ = [
    "RISK",
    "BoxError",
    "BoxReport",
    "Execution",
    "Failure",
    "Limits",
    "Opaque",
    "WeakBox",
    "inspect",
    "run",
    "steps",
]
