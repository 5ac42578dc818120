import math
import time
from dataclasses import replace

import pytest

from partway import PythonPrograms, trace, trace_all
from partway.execution.arithmetic import NotCovered
from partway.execution.interpreter import interpret
from partway.execution.traces import Failure
from partway.parsing import parse


def interpreted(text: str):
    return interpret(parse(text, "answer").statements, "multiset")


def test_one_state_per_step_and_the_answer():
    found = trace("n0 = 48\nt0 = n0 / 2\nanswer = n0 + t0")
    assert found.states == ("48", "24, 48", "24, 48, 72")
    assert found.answer == 72.0
    assert found.failure is None
    assert found.variables == {"n0": 48, "t0": 24.0, "answer": 72.0}


def test_a_failure_names_the_step_and_keeps_the_states_before_it():
    found = trace("x = 1\ny = x / 0\nanswer = y")
    assert found.states == ("1",)
    assert found.failure is not None
    assert (found.failure.kind, found.failure.step) == ("error", 1)
    assert found.failure.message == "ZeroDivisionError: division by zero"
    assert found.answer is None
    assert len(found.solution) == 3


def test_a_tail_that_does_not_parse_is_a_syntax_error_at_the_next_step():
    found = trace("x = 1\ny = 2\nz = x +")
    assert found.states == ("1", "1, 2")
    assert found.failure is not None
    assert (found.failure.kind, found.failure.step) == ("error", 2)
    assert "SyntaxError: invalid syntax (line 3, column 8)" in found.failure.message


def test_what_follows_the_answer_does_not_matter():
    assert trace("answer = 1\nx = = 2\n((").failure is None


def test_an_answer_counts_only_if_nothing_failed():
    found = trace("n0 = 5\nanswer = n0 * 5")
    assert found.has_answer
    assert not replace(found, failure=Failure("error", "ZeroDivisionError: division by zero", 2)).has_answer
    assert not trace("n0 = 5\nif n0:\n    answer = 25\n    n1 = n0 / 0").has_answer


def test_reassignment_replaces_a_value():
    assert trace("x = 1\ny = 1\nx = 2").states == ("1", "1, 1", "1, 2")


def test_a_step_that_sets_nothing_leaves_the_state():
    assert trace("x = 1\nprint(x)\nx").states == ("1", "1", "1")


def test_an_empty_program_has_no_states_and_no_failure():
    found = trace("   \n\t\n")
    assert (found.states, found.failure, found.answer) == ((), None, None)


@pytest.mark.parametrize(
    "text",
    [
        "x = 10 ** 10 ** 10",
        "x = 7 ** 6000",
        "x = 1 << 10 ** 9",
        "import math\nx = math.factorial(10 ** 6)",
        "import math\nx = math.comb(10 ** 8, 5 * 10 ** 7)",
        "import math\nx = math.comb(10 ** 300, 10 ** 4)",
        "import math\nx = math.perm(10 ** 7)",
        "x = round(5, -(10 ** 9))",
        "x = 9 ** 4000\nx *= x\nx *= x\nx *= x",
        "x = 10 ** 4000\ny = x * x",
        "import math\nx = math.lcm(10 ** 4000 + 1, 10 ** 4000 + 3)",
    ],
)
def test_costs_are_bounded_before_they_are_paid(text: str):
    started = time.process_time()
    seen = interpreted(text)
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
        ("10 ** 3000 % 7", 10**3000 % 7),
        ("math.pi", math.pi),
    ],
)
def test_cheap_arithmetic_is_not_mistaken_for_a_bomb(expression: str, value: object):
    seen = interpreted(f"import math\nx = {expression}")
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
    ],
)
def test_what_the_interpreter_does_not_cover_it_hands_on(text: str):
    with pytest.raises(NotCovered):
        interpreted(text)


def test_many_solutions_are_traced_in_order_and_known_ones_once():
    texts = ["answer = 1", "answer = 2", "answer = 1"]
    first, second, third = trace_all(texts)
    assert (first.answer, second.answer) == (1, 2)
    assert third is first


def test_states_in_the_other_modes():
    assert trace("x = 2\ny = 2.0", PythonPrograms(state="set")).states == ("2", "2")
    assert trace("x = 2\ny = 2.0", PythonPrograms(state="strict")).states == ("2", "2, 2.0")


def test_ten_megabytes_of_text_are_refused_at_once():
    started = time.process_time()
    found = trace("x = 1\n" * 1_700_000)
    assert found.failure is not None
    assert "at most 100,000" in found.failure.message
    assert time.process_time() - started < 1


def test_long_text_that_never_parses_is_given_up_soon():
    started = time.process_time()
    found = trace("if x:\n" + "  y = (\n" * 10_000)
    assert found.failure is not None
    assert time.process_time() - started < 5
