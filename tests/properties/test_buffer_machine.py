"""SolutionBuffer against its naive twin, with the invariants of the algorithm after every rule."""

import json
import random

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from naive_buffer import NaiveBuffer
from strategies import REFERENCES, examples, small_programs

from partway import EMPTY, Problem, Solution, SolutionBuffer, is_correct, trace
from partway.buffer import Rules


class BufferMachine(RuleBasedStateMachine):
    @initialize(
        reference=st.sampled_from(REFERENCES),
        tolerance=st.sampled_from([0, 0, 1]),
        partial=st.booleans(),
        dead_ends=st.sampled_from(["keep", "drop"]),
    )
    def seed(self, reference: str | None, tolerance: int, partial: bool, dead_ends: str) -> None:
        self.problem = Problem("p", "?", 4, reference)
        rules = Rules(length_tolerance=tolerance, keeps_partial=partial, dead_ends=dead_ends)
        self.buffer = SolutionBuffer.seeded(self.problem, rules)
        self.naive = NaiveBuffer(4, tolerance, partial, dead_ends == "drop")
        if reference is not None:
            self.naive.seed(trace(reference))
        self.considered: list[str] = []

    @rule(text=small_programs())
    def consider(self, text: str) -> None:
        assert self.buffer.consider(trace(text)) == self.naive.consider(trace(text))
        self.considered.append(text)

    @rule(text=small_programs())
    def considering_twice_changes_nothing(self, text: str) -> None:
        self.consider(text)
        before = self.buffer.to_json()
        assert not self.buffer.consider(trace(text)).is_new
        assert self.buffer.to_json() == before

    @precondition(lambda self: self.considered)
    @rule(data=st.data())
    def consider_an_earlier_one(self, data: st.DataObject) -> None:
        """More may be known by now, so that a beginning of it is kept this time."""
        text = data.draw(st.sampled_from(self.considered))
        assert self.buffer.consider(trace(text)) == self.naive.consider(trace(text))

    @rule(seed=st.integers(0, 100))
    def draw_a_prefix(self, seed: int) -> None:
        drawn = self.buffer.draw_prefix(random.Random(seed))
        assert drawn == EMPTY or drawn in self.buffer.partially_correct

    @rule()
    def save_and_load(self) -> None:
        text = json.dumps(self.buffer.to_json())
        restored = SolutionBuffer.from_json(self.problem, json.loads(text))
        assert json.dumps(restored.to_json()) == text
        assert _as_sets(restored.prefixes_by_state) == _as_sets(self.buffer.prefixes_by_state)
        self.buffer = restored

    @invariant()
    def it_equals_its_twin(self) -> None:
        if not hasattr(self, "buffer"):
            return
        assert [s.steps for s in self.buffer.fully_correct] == self.naive.fully
        assert sorted(s.steps for s in self.buffer.partially_correct) == sorted(self.naive.partially)
        pairs = {(state, p.steps) for state, ps in self.buffer.prefixes_by_state.items() for p in ps}
        assert pairs == set(self.naive.pairs)

    @invariant()
    def no_kept_solution_is_a_prefix_of_another(self) -> None:
        kept = self._kept()
        assert not any(a != b and b.startswith(a) for a in kept for b in kept)
        assert EMPTY not in kept

    @invariant()
    def every_known_prefix_executes_to_its_state(self) -> None:
        known = self.buffer.prefixes_by_state if hasattr(self, "buffer") else {}
        for state, prefixes in known.items():
            assert all(trace(prefix).states[-1] == state for prefix in prefixes)

    @invariant()
    def every_fully_correct_solution_gives_the_answer(self) -> None:
        for solution in self.buffer.fully_correct if hasattr(self, "buffer") else ():
            assert is_correct(trace(solution).answer, 4)

    def _kept(self) -> list[Solution]:
        if not hasattr(self, "buffer"):
            return []
        return [*self.buffer.fully_correct, *self.buffer.partially_correct]


def _as_sets(mapping: dict[str, tuple[Solution, ...]]) -> dict[str, set[Solution]]:
    return {state: set(prefixes) for state, prefixes in mapping.items()}


TestBuffer = BufferMachine.TestCase
TestBuffer.settings = settings(examples(60), stateful_step_count=25)


@examples(100)
@given(st.lists(small_programs(), max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_correct_samples_does_not_matter_to_what_is_known(
    texts: list[str], rng: random.Random
) -> None:
    problem = Problem("p", "?", 4, REFERENCES[0])
    correct = [text for text in texts if is_correct(trace(text).answer, 4) and len(trace(text).solution) <= 4]
    shuffled = rng.sample(correct, len(correct))
    buffers = []
    for order in (correct, shuffled):
        buffer = SolutionBuffer.seeded(problem)
        for text in order:
            buffer.consider(trace(text))
        buffers.append(buffer)
    one, other = buffers
    assert set(one.fully_correct) == set(other.fully_correct)
    assert _as_sets(one.prefixes_by_state) == _as_sets(other.prefixes_by_state)
