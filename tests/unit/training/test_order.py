"""Which problems a step takes, and which process takes them."""

from collections import Counter
from types import SimpleNamespace

from partway import registry
from partway.problem import Problem
from partway.training.order import Batches, BatchOrder, ProblemLoader

PROBLEMS = [Problem(f"p{number}", "?", number) for number in range(10)]


class Shared:
    """Buffers as a step sees them: which were explored since the last exchange, and what is solved."""

    def __init__(self, drawn: dict[str, int] | None = None) -> None:
        self.due: set[str] = set()
        self.exchanges = 0
        self.drawn = Counter(drawn)

    def are_due(self, batch: list[Problem]) -> bool:
        return any(problem.id in self.due for problem in batch)

    def will_explore(self, batch: list[Problem]) -> None:
        self.due |= {problem.id for problem in batch}

    def exchange(self) -> None:
        self.exchanges += 1
        self.due = set()

    def is_solved(self, key: str) -> bool:
        return key in ("p0", "p1", "p2")


def batches(shared: Shared, **settings: object) -> Batches:
    usual = {"seed": 0, "data_seed": None, "problems_per_step": 4, "gradient_accumulation_steps": 1}
    usual |= {"process_index": 0, "world_size": 1, "solved_share": None, "sample_budget": "equal"}
    return Batches(SimpleNamespace(**usual | settings), PROBLEMS, shared)


def test_an_epoch_takes_every_problem_once_also_those_of_a_smaller_last_step():
    order = BatchOrder(10, 4, seed=0)
    assert [len(batch) for batch in order] == [4, 4, 2]
    assert sorted(place for batch in order for place in batch) == list(range(10))


def test_every_epoch_and_every_seed_has_an_order_of_its_own():
    first, other = BatchOrder(100, 100, seed=0), BatchOrder(100, 100, seed=1)
    assert len({tuple(order.batch(epoch)) for order in (first, other) for epoch in (0, 1)}) == 4


def test_an_epoch_is_found_again_without_those_before_it():
    order = BatchOrder(10, 4, seed=0)
    order.set_epoch(2)
    assert list(order) == [BatchOrder(10, 4, seed=0).batch(step) for step in (6, 7, 8)]


def test_processes_and_accumulation_divide_a_step_and_do_not_change_it():
    whole = BatchOrder(10, 4, seed=0)
    divided = [BatchOrder(10, 4, seed=0, accumulation=2, rank=rank, world=2) for rank in (0, 1)]
    for step in range(6):
        shares = [place for order in divided for part in order.parts(step) for place in part]
        assert sorted(shares) == sorted(whole.batch(step))


def test_the_order_has_a_seed_of_its_own_where_one_is_set():
    args = SimpleNamespace(seed=1, problems_per_step=4, gradient_accumulation_steps=1)
    args.process_index, args.world_size = 0, 1
    for data_seed, seed in ((None, 1), (2, 2), (0, 0)):
        args.data_seed = data_seed
        assert BatchOrder.of(args, 10).batch(0) == BatchOrder(10, 4, seed=seed).batch(0)


def test_a_million_problems_are_not_shuffled_anew_for_every_step(monkeypatch):
    made = []
    monkeypatch.setattr(
        "partway.training.order.shuffled", lambda count, seed: made.append(seed) or [*range(count)]
    )
    order = BatchOrder(10, 4, seed=0)
    for step in (0, 2, 3, 2, 3, 1):  # near an epoch's end, the steps ahead are in the next
        order.batch(step)
    assert made == ["0/0", "0/1"]


def test_an_epoch_has_a_batch_for_every_accumulation_step():
    order = BatchOrder(10, 4, seed=0, accumulation=2)
    assert len(order) == len(list(order)) == 6


def test_findings_are_exchanged_before_a_step_that_takes_an_explored_problem_again():
    shared = Shared()
    taking = batches(shared)
    epoch = [taking.take(step, shared.exchange) for step in range(3)]
    assert (shared.exchanges, len(shared.due)) == (0, 10), "every problem once, by some process"
    again = taking.take(3, shared.exchange)
    assert (shared.exchanges, shared.due) == (1, {problem.id for problem in again})
    assert sorted(problem.id for batch in epoch for problem in batch) == [p.id for p in PROBLEMS]


def test_an_order_by_what_is_solved_knows_what_the_last_step_found():
    shared, seen = Shared(), []
    taking = batches(shared)

    class ByFindings:
        def batch(self, step: int) -> list[int]:
            seen.append(shared.exchanges)
            return [step]

    taking.mixed = ByFindings()
    assert [taking.take(step, shared.exchange)[0].id for step in range(3)] == ["p0", "p1", "p2"]
    assert seen == [0, 1, 2]


def test_what_a_process_takes_is_known_ahead():
    taking = batches(Shared(), gradient_accumulation_steps=2, process_index=1, world_size=2)
    for step in range(5):
        ahead = taking.ahead(step)
        whole = taking.take(step, lambda: None)
        assert ahead == taking.parts == [whole[1::4], whole[3::4]]


def test_samples_are_divided_by_what_is_solved_and_drawn():
    drawn = {"p0": 40, "p3": 400, "p4": 10_000}
    taking = batches(Shared(drawn), sample_budget="success", samples_per_problem=6, problems_per_step=10)
    ids = [problem.id for problem in taking.take(0, lambda: None)]
    tried = [(key in ("p0", "p1", "p2"), drawn.get(key, 0)) for key in ids]
    divided = registry.part("choices", "sample_budget")
    assert taking.counts() == dict(zip(ids, divided(60, tried), strict=True))
    assert len(set(taking.counts().values())) > 1
    assert batches(Shared(drawn), samples_per_problem=6).counts() == {}


def test_a_loader_goes_to_the_epoch_that_it_is_told():
    loader = ProblemLoader(PROBLEMS, BatchOrder(10, 4, seed=0))
    loader.set_epoch(1)
    assert list(loader) == [
        [PROBLEMS[n] for n in BatchOrder(10, 4, seed=0).batch(step)] for step in (3, 4, 5)
    ]
