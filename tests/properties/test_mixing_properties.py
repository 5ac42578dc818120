"""Which problems a step takes where few have a solution, and how its samples are divided among them."""

import random
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from partway.beyond.choosing import MixedOrder, Tried, divided
from partway.problem import Problem
from partway.training.order import shuffled

tried = st.builds(Tried, st.booleans(), st.integers(0, 10_000))


class SlowQueues:
    """Two lists, looked through from the start for every batch."""

    def __init__(self, problems: int, size: int, share: float, seed: int, solved: set[int]) -> None:
        self.solved, self.size, self.share = solved, min(size, problems), share
        self.order = shuffled(problems, f"{seed}/mixed")
        self.history: list[tuple[int, bool, int]] = []  # step, whether solved then, problem

    def _last_turn(self, problem: int) -> int:
        turns = [(step, kind) for step, kind, one in self.history if one == problem]
        step, kind = turns[-1] if turns else (0, None)
        return step if kind == (problem in self.solved) else 0

    def batch(self, step: int) -> list[int]:
        waiting = sorted(self.order, key=self._last_turn)  # stable: those alike as they were shuffled
        solved = [problem for problem in waiting if problem in self.solved]
        unsolved = [problem for problem in waiting if problem not in self.solved]
        wanted = min(round(self.share * self.size), len(solved))
        wanted = max(wanted, self.size - len(unsolved))
        batch = solved[:wanted] + unsolved[: self.size - wanted]
        self.history += [(step + 1, problem in self.solved, problem) for problem in batch]
        return batch


@given(
    problems=st.integers(1, 12),
    size=st.integers(1, 6),
    share=st.floats(0, 1),
    first=st.sets(st.integers(0, 11)),
    seed=st.integers(0, 99),
    resumed=st.sets(st.integers(0, 30)),
)
def test_the_queues_are_those_of_a_slow_model_also_when_resumed(problems, size, share, first, seed, resumed):
    solved = {problem for problem in first if problem < problems}
    mixed = MixedOrder(problems, size, share, seed, solved.__contains__)
    slow = SlowQueues(problems, size, share, seed, solved)
    rng = random.Random(seed)
    for step in range(30):
        if step in resumed:
            mixed.put_back(step)
            turns = mixed.turns
            mixed = MixedOrder(problems, size, share, seed, solved.__contains__)
            mixed.go_back_to(turns)
        batch = mixed.batch(step)
        if rng.random() < 0.3:  # servers failed: the step is begun again
            mixed.put_back(step)
            assert mixed.batch(step) == batch
        assert batch == slow.batch(step)
        assert len(set(batch)) == len(batch) == min(size, problems)
        solved ^= {problem for problem in batch if rng.random() < 0.2}


@given(st.sets(st.integers(0, 19)), st.integers(0, 99))
def test_every_problem_is_taken_again_and_again(solved, seed):
    mixed = MixedOrder(20, 4, 0.5, seed, solved.__contains__)
    taken = {problem for step in range(12) for problem in mixed.batch(step)}
    assert taken == set(range(20))


def test_a_problem_solved_late_does_not_wait_for_all_others():
    solved = set(range(18))
    mixed = MixedOrder(20, 4, 0.5, 0, solved.__contains__)
    for step in range(20):
        mixed.batch(step)
    solved.add(19)
    assert 19 in mixed.batch(20)[:2]
    assert 19 not in mixed.batch(21), "it had its turn"


def test_the_mixed_order_has_a_seed_of_its_own_where_one_is_set():
    problems = [Problem(f"p{number}", "?", number) for number in range(20)]
    args = SimpleNamespace(seed=1, problems_per_step=4, solved_share=0.25)
    for data_seed, seed in ((None, 1), (2, 2), (0, 0)):
        args.data_seed = data_seed
        made = MixedOrder.of(args, problems, {"p7", "p9"}.__contains__)
        assert made.batch(0) == MixedOrder(20, 4, 0.25, seed, {7, 9}.__contains__).batch(0)


@given(st.lists(tried, min_size=1, max_size=12), st.integers(1, 20))
def test_a_budget_is_spent_whole_and_each_problem_gets_a_sample(problems, num_generations):
    counts = divided(num_generations * len(problems), problems)
    assert sum(counts) == num_generations * len(problems)
    assert min(counts) >= 1


@given(st.lists(tried, min_size=2, max_size=12), st.integers(1, 20))
def test_who_has_the_larger_weight_gets_no_fewer_samples(problems, num_generations):
    counts = divided(num_generations * len(problems), problems)
    for problem, count in zip(problems, counts, strict=True):
        lighter = [c for p, c in zip(problems, counts, strict=True) if p.weight < problem.weight]
        assert count >= max(lighter, default=0)


@given(st.booleans(), st.integers(0, 10_000), st.integers(0, 10_000))
def test_samples_without_a_solution_never_raise_a_weight(is_solved, drawn, more):
    assert Tried(is_solved, drawn + more).weight <= Tried(is_solved, drawn).weight
