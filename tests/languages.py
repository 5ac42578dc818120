"""A language, an equivalence and a checker of one's own, as small as they can be."""

from collections.abc import Sequence
from dataclasses import dataclass

from partway import Programs, PythonPrograms, Solution, Trace, trace_all


class Expressions(Programs):
    """One arithmetic expression per line; `_` is the value of the line before, the last one the answer."""

    def parse(self, text: str) -> Solution:
        return Solution(tuple(line.strip() for line in text.splitlines() if line.strip()))

    def trace_all(self, texts: Sequence[str]) -> list[Trace]:
        return [self._trace(self.parse(text)) for text in texts]

    def _trace(self, solution: Solution) -> Trace:
        # Python's own tracer does the arithmetic: line n becomes `_ = expression`.
        run = trace_all(["\n".join(f"_ = {line}" for line in solution.steps)])[0]
        states = tuple(repr(change["_"][0]) for change in run.changes if change["_"] is not None)
        outcome = (run.variables["_"],) if run.failure is None and states else None
        return Trace(solution, states, run.changes, run.failure, outcome)


@dataclass(frozen=True)
class LastValue(PythonPrograms):
    """Two states are the same when the last step set the same value, whatever else there is."""

    def trace_all(self, texts: Sequence[str]) -> list[Trace]:
        return [
            found._replace(states=tuple(map(self._last, found.changes))) for found in super().trace_all(texts)
        ]

    def _last(self, changed) -> str:
        return ", ".join(self.spell(value[0]) for value in changed.values() if value is not None)


def same_expression(value: object, answer: object) -> bool:
    """Whether two sums have the same terms."""
    return sorted(str(value).split(" + ")) == sorted(str(answer).split(" + "))
