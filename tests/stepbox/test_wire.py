import math
import time
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepbox import Failure, Opaque
from stepbox.channel import FrameReader, frame
from stepbox.results import read_reply
from stepbox.wire import (
    MAX_INTEGER_BITS,
    MAX_VALUE_TEXT,
    Decoder,
    IntegerTooLarge,
    TooMuchWork,
    WireError,
    decode_line,
    encode_value,
    to_json,
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(), max_size=20)  # lone surrogates too
    | st.binary(max_size=20)
    | st.complex_numbers(allow_nan=False)
    | st.fractions()
    | st.decimals(allow_nan=False)
)
hashables = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.fractions(),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.sets(hashables, max_size=4)
        | st.dictionaries(hashables, inner, max_size=4)
    ),
    max_leaves=12,
)


def through_the_wire(value):
    return Decoder().decode(decode_line(encode_value(value).encode()))


@given(values)
def test_plain_values_arrive_as_they_were(value):
    arrived = through_the_wire(value)
    assert arrived == value
    assert type(arrived) is type(value)
    assert encode_value(arrived) == encode_value(value)


def test_floats_without_equals_arrive_too():
    nan, zero, infinity = through_the_wire([math.nan, -0.0, -math.inf])
    assert math.isnan(nan)
    assert math.copysign(1, zero) == -1
    assert infinity == -math.inf


def test_relatives_of_containers_arrive_as_plain_containers():
    Point = namedtuple("Point", "x y")
    assert through_the_wire(Point(1, [2])) == (1, [2])
    assert through_the_wire(deque([1, 2])) == [1, 2]
    assert through_the_wire(bytearray(b"ab")) == b"ab"
    for mapping in (Counter("aab"), OrderedDict(a=2, b=1), defaultdict(int, a=2, b=1)):
        assert through_the_wire(mapping) == {"a": 2, "b": 1}


def test_a_tuple_with_a_hash_of_its_own_is_no_plain_tuple_and_may_be_a_key():
    class Key(tuple):
        _fields = ()

        def __hash__(self):
            return 1

    assert through_the_wire({Key(([1],)): 2}) == {Opaque("Key"): 2}


def test_objects_arrive_as_the_name_of_their_type():
    class Point:
        def __repr__(self):
            raise AssertionError("recording must not ask")

    class Whole(int):
        def __eq__(self, other):
            raise AssertionError("recording must not compare")

        __hash__ = int.__hash__

    assert through_the_wire(Point()) == Opaque("Point")
    assert through_the_wire([Whole(3)]) == [Opaque("Whole")]
    assert through_the_wire(iter([])) == Opaque("list_iterator")
    assert through_the_wire(range(3)) == Opaque("range(0, 3)")
    assert through_the_wire(...) == Opaque("ellipsis")


def test_cyclic_deep_and_branching_containers_are_opaque():
    cyclic: list = []
    cyclic.append(cyclic)
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    branching: list = []
    for _ in range(60):
        branching = [branching, branching]
    for value in (cyclic, deep, branching):
        assert through_the_wire(value) == Opaque("list")


def test_long_values_travel_as_digests_of_their_content():
    long = list(range(MAX_VALUE_TEXT))
    assert through_the_wire(long) == through_the_wire(list(long)) != through_the_wire(long[1:])
    text = "a" * 10**6
    assert isinstance(through_the_wire(text), Opaque)
    assert through_the_wire(text) == through_the_wire("a" * 10**6) != through_the_wire(text + "b")
    assert len(encode_value(b"a" * 10**6)) < 100


@pytest.mark.parametrize("wrap", [lambda n: n, lambda n: [0, -n], lambda n: {n}, lambda n: {"a": (1.5, n)}])
def test_integers_are_bounded_wherever_they_are(wrap):
    limit = 1 << MAX_INTEGER_BITS
    assert through_the_wire(wrap(limit - 1)) == wrap(limit - 1)
    with pytest.raises(IntegerTooLarge):
        encode_value(wrap(limit))
    with pytest.raises(IntegerTooLarge):
        encode_value(Fraction(1, limit))


def test_decimals_nobody_could_write_out_are_opaque():
    assert through_the_wire(Decimal("1e30")) == Decimal("1e30")
    for text in ("1e999999", "1e-999999", "1" * 5000):
        assert isinstance(through_the_wire(Decimal(text)), Opaque)
    assert through_the_wire(Decimal("-Infinity")) == Decimal("-Infinity")


@pytest.mark.parametrize(
    "text",
    [
        '{"o": 5}', '{"t": 3}', '{"t": {}}', '{"x": 1}', "{}", '{"t": [], "s": []}', '{"s": [[]]}',
        '{"d": [[1]]}', '{"d": [[[], 1]]}', '{"d": {"a": 1}}', '{"q": [1, 0]}', '{"q": [1.5, 2]}', '{"q": 7}',
        '{"m": "1e999999"}', '{"m": "soup"}', '{"m": 3}', '{"b": "zz"}', '{"b": 5}', '{"c": [1]}',
        '{"c": ["a", "b"]}', "[" * 150 + "]" * 150, str(1 << MAX_INTEGER_BITS), "[1", "", "9" * 5000,
        "[" * 100_000,
    ],
)  # fmt: skip
def test_what_no_worker_would_send_is_refused(text):
    with pytest.raises(WireError):
        Decoder().decode(decode_line(text.encode()))


@given(st.lists(st.binary(max_size=50), max_size=6), st.integers(1, 20))
def test_frames_survive_any_cut_of_the_stream(payloads, size):
    stream = b"".join(map(frame, payloads))
    reader = FrameReader()
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert [payload for piece in pieces for payload in reader.feed(piece)] == payloads


def test_a_frame_over_the_limit_is_refused_before_it_has_arrived():
    with pytest.raises(WireError, match="limit"):
        list(FrameReader(limit=10).feed(frame(b"a" * 11)[:6]))


@given(st.binary(max_size=60))
def test_any_reply_is_an_execution(payload):
    for ending in (b"null", b'["timeout","late"]'):
        execution = read_reply(payload, ending, 2, "answer")
        assert execution.failure is None or 0 <= execution.failure.step < 2


@pytest.mark.parametrize(
    "reply",
    [
        b"", b"nul", b"[]", b"[{},[]]", b"[{},[]]\n[{},[]]\n[{},[]]\nnull", b'["error","m",0]',
        b'["fine","m"]', b'["error",5]', b'[{"1x":5},[]]\nnull', b'[{"x":{"z":1}},[]]\nnull',
        b"[{},[3]]\nnull", b"[5,[]]\nnull", b'[{},[]]\n[{},[]]\n["error","m"]', b"\xff\nnull",
        b'[{"x":5}]\nnull', b"null", b'[{"x":5},[]]\nnull',
    ],
)  # fmt: skip
def test_malformed_replies_become_failures(reply):
    execution = read_reply(reply, b"null", 2, "answer")
    assert execution.changes == ()
    assert execution.failure is not None
    assert execution.failure.kind == "error"
    assert "refused" in execution.failure.message


def test_a_reply_is_read_step_by_step():
    record = b'[{"x":[1,2.5]},[]]\n[{"y":NaN},["x"]]\n'
    execution = read_reply(record + b'["timeout","late"]', b"null", 3, "answer")
    assert execution == read_reply(record + b'[{"z', b'["timeout","late"]', 3, "answer")
    first, second = execution.changes
    assert first == {"x": ([1, 2.5],)}
    assert second["x"] is None
    assert math.isnan(second["y"][0])
    assert execution.failure is not None
    assert (execution.failure.kind, execution.failure.message, execution.failure.step) == (
        "timeout",
        "late",
        2,
    )


def test_an_early_end_is_believed_with_an_answer_only():
    execution = read_reply(b'[{"answer":5},[]]\nnull', b"null", 2, "answer")
    assert execution.failure is None
    assert execution.changes == ({"answer": (5,)},)


@pytest.mark.parametrize(
    "value",
    [
        "[" + ",".join(['{"m":"1E+3998"}'] * 1_990) + "]",
        "[" + ",".join(["1.5"] * 60_000) + "]",
        "[" + ",".join(['{"q":[1,3]}'] * 9_000) + "]",
        "[" + ",".join(["[]"] * 50_000) + "]",
        '{"d":[' + ",".join(f"[{n},{n}]" for n in range(20_000)) + "]}",
    ],
)
def test_states_that_would_keep_this_process_busy_are_given_up_early(value, no_collecting):
    record = b'[{"x":1},[]]\n[{"y":%s},[]]\nnull' % value.encode()
    start = time.process_time()
    execution = read_reply(record, b"null", 2, "answer")
    assert time.process_time() - start < 0.2
    assert execution.changes == ({"x": (1,)},)
    assert execution.failure == Failure("memory", "the states are too large to be kept", 1)


def test_values_of_one_hash_are_charged_for_before_they_are_compared():
    prime = 2**61 - 1
    for many in ([k * prime for k in range(1000)], [{"f": [k * prime]} for k in range(1000)]):
        for encoded in ({"s": many}, {"f": many}, {"d": [[key, 1] for key in many]}):
            with pytest.raises(TooMuchWork):
                Decoder().decode(encoded)
    assert len(Decoder().decode({"s": list(range(1000))})) == 1000


def test_a_long_list_of_numbers_is_told_by_its_content_without_being_written():
    numbers = list(range(20_000))
    assert encode_value(numbers).startswith('{"o":"list#')
    assert encode_value(numbers) == encode_value([int(str(n)) for n in numbers])
    assert (
        len({encode_value(numbers), encode_value([*numbers, 1]), encode_value([*map(float, numbers)])}) == 3
    )
    with pytest.raises(IntegerTooLarge):
        encode_value([*numbers, 1 << 14_000])


def test_equal_values_are_rebuilt_once_whatever_their_names():
    line = to_json([{f"a{n}": {"d": [["k", {"t": [n % 2, *map(str, range(900))]}]]} for n in range(40)}, []])
    found = read_reply(f"{line}\nnull".encode(), b"null", 1, "").changes[0]
    assert len(found) == 40
    assert len({id(value[0]) for value in found.values() if value}) == 2
