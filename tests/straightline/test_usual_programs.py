"""Which programs go the short way, and that all others are left to the interpreter."""

import pytest

from straightline import OneEach, Trace, parse
from straightline.interpreter import interpret
from straightline.tracing import MAX_STATE, _trace_usual, _traced

USUAL = "n0 = 10\nn1 = 4\nt0 = n0 / n1\nt1 = t0 * (n0 - 1)\nanswer = t1 + n1"


def the_long_way(text: str) -> Trace:
    parsed = parse(text, "answer")
    return _traced(parsed, interpret(parsed.statements), "answer", "multiset")


def test_a_usual_program_goes_the_short_way():
    found = _trace_usual(USUAL, "answer")
    assert found.states == ("10", "10, 4", "10, 2.5, 4", "10, 2.5, 22.5, 4", "10, 2.5, 22.5, 26.5, 4")
    assert found.changes[3] == {"t1": (22.5,)}
    assert (found.outcome, found.failure, found.elsewhere) == ((26.5,), None, False)


@pytest.mark.parametrize(
    "text",
    [
        *(USUAL + "\n", USUAL.replace(" = ", "  ="), USUAL.replace("\n", "  # a number\n")),
        *("n0 = 1", "n0 = 2 ** 3", "n0 = True\nn1 = n0 > 0", "n0 = 0.1 * 3\nn1 = round(n0, 2)", "n0 = -0.0"),
    ],
)
def test_short_ways_end_where_the_interpreter_ends(text):
    short = _trace_usual(text, "answer")
    assert short is not None
    assert short == the_long_way(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "n0 = 1\n\nanswer = n0",
        "n0 = 1\nn0 = 2",
        "answer = 1\nn0 = 2",
        "n0 = 1 / 0",
        "n0 = n1",
        "n0 = max",
        "import math\nn0 = 1",
        "n0 = n1 = 1",
        "n0, n1 = 1, 2",
        "n0 = 1\nn0 += 1",
        "n0 = [1]",
        "n0 = (",
        "n0 = 9 ** 9 ** 9",
        "n0 = 2 ** 2000\n" + "\n".join(f"n{i} = n{i - 1} + 1" for i in range(1, 4)),
        "\n".join(f"n{i} = {i}" for i in range(200)),
    ],
)
def test_whatever_is_unusual_is_left_to_the_interpreter(text):
    assert _trace_usual(text, "answer") is None


def test_large_states_are_left_to_the_interpreter():
    digits = "9" * 18
    lines = [f"n{i} = {digits}" for i in range(40)]
    assert sum(len(digits) + 2 for _ in lines) < MAX_STATE
    assert _trace_usual("\n".join(lines), "answer") is not None
    assert (
        _trace_usual("n0 = 3 ** 1000\nn1 = n0 * 3\nn2 = n0 * 5\nn3 = n0 * 7\nn4 = n0 * 9", "answer") is None
    )


def test_changes_of_one_variable_each_are_as_good_as_a_tuple_of_them():
    changes = OneEach({"n0": 1, "answer": 2.0})
    expected = ({"n0": (1,)}, {"answer": (2.0,)})
    assert changes == expected
    assert expected == changes
    assert (len(changes), changes[-1], changes[:1]) == (2, expected[1], expected[:1])
    assert changes != ({"n0": (1,)},)
