import gc
import tracemalloc
from operator import itemgetter

from partway import trace, trace_all
from partway.language import python
from partway.language.language import Trace
from partway.language.python import MAX_TRACE_BYTES, Memo, size_of
from partway.solution import Solution
from straightline import Failure


def held_by(programs):
    """The bytes that were allocated for the traces and kept; now and then other threads keep some, too."""
    python.forget()
    tracemalloc.start()
    traces = trace_all(programs)
    python.forget()
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held, traces


def test_the_size_of_a_trace_is_not_less_than_what_it_takes():
    texts = [
        f"a = {number}\nb = a * {number}\nc = [a, b, 'x{number}']\nd = {{b: c}}" for number in range(200)
    ]
    plain = [f"a = {number}\nb = a * 3.5\nc = a / b\nanswer = c + {number}" for number in range(200)]
    for programs in (texts, plain):
        trace_all(programs[:1])  # what the first use brings along is not a trace's
        held, traces = min((held_by(programs) for _ in range(3)), key=itemgetter(0))
        counted = sum(size_of(text, found) for text, found in zip(programs, traces, strict=True))
        assert held / 3 < counted
        assert len({found.isolated for found in traces}) == 1


def test_programs_that_make_large_states_leave_the_memo_within_its_bytes():
    memo = Memo(max_bytes=1 << 20)
    state = "1" * 4_000
    for number in range(1_000):
        found = Trace(Solution(("x = 1",)), (state + str(number),), ({"x": (1,)},))
        memo.remember({str(number): found})
    assert 50 < len(memo) < (1 << 20) / 8_000
    assert memo.recall("999") is not None
    assert memo.recall("0") is None


def test_a_trace_too_large_to_be_worth_its_room_is_not_remembered():
    memo = Memo()
    values = [[0] * 100 for _ in range(MAX_TRACE_BYTES // 800 + 1)]
    memo.remember({"x": Trace(Solution(("x = 1",)), ("1",), ({"x": (values,)},), isolated=True)})
    assert len(memo) == 0


def test_what_ran_out_of_time_or_memory_is_run_again():
    memo = Memo()
    for kind in ("timeout", "memory", "error", "forbidden"):
        memo.remember({kind: Trace(Solution(("x",)), (), (), Failure(kind, "", 0))})
    assert [kind for kind in ("timeout", "memory", "error", "forbidden") if memo.recall(kind)] == [
        "error",
        "forbidden",
    ]


def test_a_program_whose_worker_was_killed_is_run_again():
    memo = Memo()
    killed = Failure("error", "worker was killed from outside, twice", 0, is_own=False)
    memo.remember({"killed": Trace(Solution(("x",)), (), (), killed)})
    assert memo.recall("killed") is None


def test_a_trace_says_whether_an_isolated_worker_reported_it():
    assert not trace("x = 1").isolated
    assert trace("x = [1]").isolated


def test_a_program_is_known_by_its_canonical_text_too():
    memo = Memo()
    (found,) = trace_all(["n0=3 # apples\nanswer=(n0)*2"])
    memo.remember({"n0=3 # apples\nanswer=(n0)*2": found})
    assert memo.recall("n0 = 3\nanswer = n0 * 2") is found
    assert len(memo) == 2
    memo.remember({"n0 = 3\nanswer = n0 * 2\n": found})
    assert len(memo) == 3, "a line end is no other spelling"
