"""Languages, an equivalence and a checker of one's own, as small as they can be."""

from collections.abc import Sequence
from dataclasses import dataclass

from partway import Failure, Language, Problem, PythonLanguage, Solution, Trace, trace_all
from partway.language import Instruction
from straightline import canonical


class Expressions(Language):
    """One arithmetic expression per line; `_` is the value of the line before, the last one the answer."""

    def parse(self, text: str) -> Solution:
        return Solution(tuple(line.strip() for line in text.splitlines() if line.strip()))

    def trace_all(self, pairs: Sequence[tuple[Problem, str]]) -> list[Trace]:
        return [self._trace(self.parse(text)) for _, text in pairs]

    def _trace(self, solution: Solution) -> Trace:
        # Python's own tracer does the arithmetic: line n becomes `_ = expression`.
        run = trace_all(["\n".join(f"_ = {line}" for line in solution.steps)])[0]
        states = tuple(repr(change["_"][0]) for change in run.changes if change["_"] is not None)
        outcome = (run.variables["_"],) if run.failure is None and states else None
        return Trace(solution, states, run.changes, run.failure, outcome)


@dataclass(frozen=True)
class Shelf(Language):
    """Each line names what is taken from the problem's shelf, its context; the last line gives the sum."""

    last: str = "total"

    def parse(self, text: str) -> Solution:
        return Solution(tuple(line.strip() for line in text.splitlines() if line.strip()))

    def trace_all(self, pairs: Sequence[tuple[Problem, str]]) -> list[Trace]:
        return [self._trace(self.parse(text), problem.context or {}) for problem, text in pairs]

    def _trace(self, solution: Solution, shelf: dict[str, int]) -> Trace:
        sums: list[int] = []
        for index, step in enumerate(solution.steps):
            if step == self.last:
                return self._found(solution.prefix(index + 1), [*sums, sums[-1] if sums else 0], None)
            if step not in shelf:
                return self._found(solution, sums, Failure("error", f"there are no {step}", index))
            sums.append(shelf[step] + (sums[-1] if sums else 0))
        return self._found(solution, sums, None)

    def _found(self, solution: Solution, sums: list[int], failure: Failure | None) -> Trace:
        changes = tuple({"sum": (taken,)} for taken in sums)
        outcome = (sums[-1],) if solution.steps[-1:] == (self.last,) and failure is None else None
        return Trace(solution, tuple(map(str, sums)), changes, failure, outcome)

    def flaw(self, problem: Problem) -> str | None:
        return "there is no shelf to take from" if problem.context is None else None

    def end(self, text: str) -> int | None:
        return text.find(f"{self.last}\n") + len(self.last) + 1 if f"{self.last}\n" in text else None

    @property
    def instruction(self) -> Instruction:
        return Instruction("Shelf", f"ends with {self.last}", comment="-- ")


@dataclass(frozen=True)
class LastValue(PythonLanguage):
    """Two states are the same when the last step set the same value, whatever else there is."""

    def trace_all(self, pairs: Sequence[tuple[Problem, str]]) -> list[Trace]:
        return [
            found._replace(states=tuple(map(self._last, found.changes))) for found in super().trace_all(pairs)
        ]

    def _last(self, changed) -> str:
        return ", ".join(canonical(value[0]) for value in changed.values() if value is not None)


def same_expression(value: object, answer: object) -> bool:
    """Whether two sums have the same terms."""
    return sorted(str(value).split(" + ")) == sorted(str(answer).split(" + "))
