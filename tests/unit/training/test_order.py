"""Which problems a step takes, and which process takes them."""

from types import SimpleNamespace

from partway.training.order import BatchOrder


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
