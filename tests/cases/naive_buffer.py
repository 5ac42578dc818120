"""The slow, obvious twin of SolutionBuffer: lists, and the rules of the algorithm one after the other."""

from collections.abc import Hashable

from partway import Trace, is_correct


class NaiveBuffer:
    """B as two lists of step tuples and M as a list of (state, prefix) pairs; every question is a scan."""

    def __init__(
        self, answer: object, tolerance: int = 0, keeps_partial: bool = True, drops_dead_ends: bool = False
    ) -> None:
        self.answer = answer
        self.tolerance = tolerance
        self.keeps_partial = keeps_partial
        self.drops_dead_ends = drops_dead_ends
        self.fully: list[tuple[str, ...]] = []
        self.partially: list[tuple[str, ...]] = []
        self.pairs: list[tuple[Hashable, tuple[str, ...]]] = []
        self.limit: int | None = None
        self.has_reference = False

    def seed(self, reference: Trace) -> None:
        self.has_reference = True
        self.consider(reference)
        self.limit = len(reference.solution)

    def consider(self, trace: Trace) -> str:
        steps = trace.solution.steps
        if len(trace.states) == 0:
            return "not_executable"
        right = trace.failure is None and trace.has_answer and is_correct(trace.answer, self.answer)
        if right:
            if steps in self.fully:
                return "known_fully_correct"
            if self.limit is None or len(steps) <= self.limit + self.tolerance:
                self.keep(self.fully, steps, trace.states)
                if not self.has_reference and len(self.fully) >= 3:  # never set by one sample
                    self.limit = sorted(map(len, self.fully))[2]
                return "new_fully_correct"
        verdict = self.consider_beginnings(trace) if self.keeps_partial else "incorrect"
        if right and verdict != "new_partially_correct":
            return "too_long"
        return verdict

    def consider_beginnings(self, trace: Trace) -> str:
        longest = len(trace.states)
        if trace.failure is None and trace.has_answer:
            longest -= 1
        for length in reversed(range(1, longest + 1)):
            state, prefix = trace.states[length - 1], trace.solution.steps[:length]
            equals = [known for known_state, known in self.pairs if known_state == state]
            if state == "" or not equals:
                continue
            if self.drops_dead_ends and not any(self.goes_on(known, prefix, trace) for known in equals):
                continue
            if prefix in equals or any(kept[:length] == prefix for kept in self.fully + self.partially):
                return "known_partially_correct"
            if length > min(map(len, equals)) + self.tolerance:
                return "too_long"
            self.keep(self.partially, prefix, trace.states)
            return "new_partially_correct"
        return "incorrect"

    def goes_on(self, known: tuple[str, ...], prefix: tuple[str, ...], trace: Trace) -> bool:
        """Whether a known prefix is not the end of a solution, and did the same steps without effect."""
        reached = {steps: state for state, steps in self.pairs}
        states = ["", *(reached[known[:length]] for length in range(1, len(known) + 1))]
        own = ["", *trace.states[: len(prefix)]]
        return known not in self.fully and idle(known, states) == idle(prefix, own)

    def keep(self, kept: list[tuple[str, ...]], steps: tuple[str, ...], states: tuple[Hashable, ...]) -> None:
        self.partially[:] = [partial for partial in self.partially if steps[: len(partial)] != partial]
        kept.append(steps)
        for length in range(1, len(steps) + 1):
            pair = (states[length - 1], steps[:length])
            if pair not in self.pairs:
                self.pairs.append(pair)


def idle(steps: tuple[str, ...], states: list[Hashable]) -> set[str]:
    """Steps after which the state is what it was."""
    return {step.strip() for i, step in enumerate(steps) if states[i] == states[i + 1]}
