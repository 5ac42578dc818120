import math
import time

import pytest

from straightline import Execution, NotCovered, Trace, trace_all
from straightline import trace as trace_until


def trace(text: str) -> Trace:
    return trace_until(text, until="answer")


def test_a_failure_names_the_step_and_keeps_the_states_before_it():
    found = trace("x = 1\ny = x / 0\nanswer = y")
    assert found.states == ("1",)
    assert found.failure is not None
    assert (found.failure.kind, found.failure.step) == ("error", 1)
    assert found.failure.message == "ZeroDivisionError: division by zero"
    assert found.outcome is None
    assert len(found.steps) == 3


def test_a_tail_that_does_not_parse_is_a_syntax_error_at_the_next_step():
    found = trace("x = 1\ny = 2\nz = x +")
    assert found.states == ("1", "1, 2")
    assert found.failure is not None
    assert (found.failure.kind, found.failure.step) == ("error", 2)
    assert "SyntaxError: invalid syntax (line 3, column 8)" in found.failure.message


def test_what_follows_the_answer_does_not_matter():
    assert trace("answer = 1\nx = = 2\n((").failure is None


def test_reassignment_replaces_a_value():
    assert trace("x = 1\ny = 1\nx = 2").states == ("1", "1, 1", "1, 2")


def test_a_step_that_sets_nothing_leaves_the_state():
    assert trace("x = 1\nprint(x)\nx").states == ("1", "1", "1")


def test_an_empty_program_has_no_states_and_no_failure():
    found = trace("   \n\t\n")
    assert (found.states, found.failure, found.outcome) == ((), None, None)


@pytest.mark.parametrize(
    "text",
    [
        "x = 10 ** 10 ** 10",
        "x = 1 << 10 ** 9",
        "import math\nx = math.factorial(10 ** 6)",
        "import math\nx = math.comb(10 ** 8, 5 * 10 ** 7)",
        "import math\nx = math.comb(10 ** 300, 10 ** 4)",
        "import math\nx = math.perm(10 ** 7)",
        "x = round(5, -(10 ** 9))",
        "import math\nx = math.perm(1 << 2000, 1500)",
        "import math\nx = math.perm(10 ** 9, 1500)",
        "import math\nx = math.comb(1 << 2000, 1000)",
        "x = 3\n" + "".join(f"x{n}=x<<2000\n" for n in range(900)),
    ],
)
def test_costs_are_bounded_before_they_are_paid(text: str):
    started = time.process_time()
    seen = trace(text)
    assert seen.failure is not None
    assert seen.failure.kind == "memory"
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 ** -(10 ** 10)", 0.0),
        ("1 ** (10 ** 9)", 1),
        ("(-1) ** (10 ** 9)", 1),
        ("0 ** (10 ** 9)", 0),
        ("math.comb(5000, 2)", 12497500),
        ("math.comb(10 ** 100, 1)", 10**100),
        ("math.factorial(20)", math.factorial(20)),
        ("math.perm(5)", 120),
        ("round(2.675, 2)", 2.67),
        ("round(2.5)", 2),
        ("7 // -2", -4),
        ("5 % -3", -1),
        ("1e308 * 10", math.inf),
        ("max([1, 2, 3])", 3),
        ("1 < 2 < 3", True),
        ("0 or 5", 5),
        ("True + 1", 2),
        ("10 ** 500 % 7", 10**500 % 7),
        ("math.lcm(4, 6, 10)", 60),
        ("math.gcd(12, 18, 27)", 3),
        ("math.factorial(200)", math.factorial(200)),
        ("math.perm(10 ** 20, 3)", math.perm(10**20, 3)),
        ("math.pi", math.pi),
    ],
)
def test_cheap_arithmetic_is_not_mistaken_for_a_bomb(expression: str, value: object):
    seen = trace(f"import math\nx = {expression}")
    assert seen.failure is None
    assert seen.changes[-1] == {"x": (value,)}


@pytest.mark.parametrize(
    "text",
    [
        "x = 'text'",
        "x = [1, 2]",
        "x = 1j",
        "x = (-8) ** 0.5",
        "x = math",
        "x = max",
        "x = math.sqrt(4)",
        "max = 3\nx = max(1, 2)",
        "import os",
        "import math as m",
        "from math import sqrt",
        "x = (1).real",
        "for i in range(3):\n    x = i",
        "x = lambda: 1",
        "__x = 1",
        "del x",
        "x = pow(2, 3, 5)",
        "print(1, end='')",
        "x: int = 3",
        "max([1], [2])",
        "x = 9 ** 4000",
        "x = 10 ** 600\ny = x * x",
        "x = 1 << 13999",
        "x = 1 << 2046\n" + "x = x + x\n" * 3,
        "import math\nx = math.factorial(1000)",
        "import math\nx = math.comb(1 << 1999, 3)",
        "import math\nx = math.perm(1 << 1999, 3)",
        "import math\nx = math.lcm(10 ** 600 + 1, 10 ** 600 + 3)",
        f"import math\nx = math.gcd({'9' * 4000}, 3)",
        "x = round(5, -4000)",
    ],
)
def test_what_the_interpreter_does_not_cover_it_hands_on(text: str):
    with pytest.raises(NotCovered):
        trace(text)


def test_what_the_interpreter_does_not_cover_goes_to_another_room_in_one_batch():
    asked = []

    def room(programs):
        asked.extend(programs)
        return [Execution(({"x": ([1],)}, {"answer": (1,)})) for _ in programs]

    texts = ["answer = 1", "x = [1]\nanswer = x[0]; y = 2", "y = 3", "x = [2]; answer = 5"]
    found = trace_all(texts, until="answer", elsewhere=room)
    assert asked == [("x = [1]", "answer = x[0]"), ("x = [2]", "answer = 5")]
    assert [one.elsewhere for one in found] == [False, True, False, True]
    assert found[1].states == ("[1]", "1, [1]")
    assert [one.outcome for one in found] == [(1,), (1,), None, (1,)]
