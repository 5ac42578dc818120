"""One function for many items, in one process or in several."""

import multiprocessing
import os

import pytest

from partway.cli.parallel import ITEMS_AT_ONCE, cores, side_by_side


def test_one_process_is_this_one():
    with side_by_side(1) as run_all:
        assert run_all is map
    assert not multiprocessing.active_children()


def test_results_come_in_the_order_of_the_items_and_the_processes_end():
    items = range(3 * ITEMS_AT_ONCE)
    with side_by_side(2) as run_all:
        assert list(run_all(str, items)) == list(map(str, items))
        assert multiprocessing.active_children()
    assert not multiprocessing.active_children()


def test_what_is_left_to_do_is_dropped_when_the_block_ends_early():
    def interrupted():
        with side_by_side(2) as run_all:
            next(run_all(str, range(100 * ITEMS_AT_ONCE)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not multiprocessing.active_children()


def test_a_mistake_in_one_process_is_raised_here():
    with pytest.raises(ValueError), side_by_side(2) as run_all:
        list(run_all(int, ["1", "two"]))


def test_cores_are_those_this_process_may_use():
    assert 1 <= cores() <= (os.cpu_count() or 1)
