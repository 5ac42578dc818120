"""`trace`: parse, choose the room, run, and turn changes of variables into states."""

from __future__ import annotations

from collections.abc import Sequence

from partway.execution.traces import Execution, Failure, Trace
from partway.execution.values import StateMode, state_of
from partway.parsing import parse_steps
from partway.solution import ANSWER_VARIABLE, Solution


def trace(
    solution: Solution | str, *, state: StateMode = "multiset", answer_variable: str = ANSWER_VARIABLE
) -> Trace:
    """Run a solution step by step: one state per step up to the first that fails, and the failure if any."""
    return trace_all([solution], state=state, answer_variable=answer_variable)[0]


def trace_all(
    solutions: Sequence[Solution | str],
    *,
    state: StateMode = "multiset",
    answer_variable: str = ANSWER_VARIABLE,
) -> list[Trace]:
    """The traces of many solutions, in order; the isolated workers run theirs in one batch."""
    return [_trace(solution, state, answer_variable) for solution in solutions]


def _trace(solution: Solution | str, mode: StateMode, answer_variable: str) -> Trace:
    text = solution if isinstance(solution, str) else solution.text
    parsed = parse_steps(text, answer_variable)
    variables: dict[str, object] = {}
    states, changes = [], []
    failure = None
    for index, step in enumerate(parsed.steps):
        before = dict(variables)
        try:
            exec(step, {}, variables)  # placeholder room, replaced by the interpreter and the workers
        except Exception as error:
            failure = Failure("error", f"{type(error).__name__}: {error}", index)
            break
        changes.append({k: (v,) for k, v in variables.items() if k not in before or before[k] is not v})
        states.append(state_of([v for k, v in variables.items() if k != "math"], mode))
    execution = Execution(tuple(changes), failure)
    return Trace(Solution(parsed.steps), tuple(states), execution.changes, failure, mode, answer_variable)
