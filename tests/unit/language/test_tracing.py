"""What both rooms say of a program, in the words of traces."""

import time
import tracemalloc

import pytest

import straightline
from partway import PythonLanguage, trace, trace_all
from partway.language import Failure, is_correct, python
from straightline import parsing


def test_one_state_per_step_and_the_answer():
    found = trace("n0 = 48\nt0 = n0 / 2\nanswer = n0 + t0")
    assert found.states == ("48", "24, 48", "24, 48, 72")
    assert found.answer == 72.0
    assert found.failure is None
    assert found.variables == {"n0": 48, "t0": 24.0, "answer": 72.0}


def test_an_answer_counts_only_if_nothing_failed():
    found = trace("n0 = 5\nanswer = n0 * 5")
    assert found.has_answer
    assert not found._replace(failure=Failure("error", "ZeroDivisionError: division by zero", 2)).has_answer
    assert not trace("n0 = 5\nif n0:\n    answer = 25\n    n1 = n0 / 0").has_answer


def test_many_solutions_are_traced_in_order_and_known_ones_once():
    texts = ["answer = 1", "answer = 2", "answer = 1"]
    first, second, third = trace_all(texts)
    assert (first.answer, second.answer) == (1, 2)
    assert third is first


def test_states_in_the_other_modes():
    assert trace("x = 2\ny = 2.0", PythonLanguage(state="set")).states == ("2", "2")
    assert trace("x = 2\ny = 2.0", PythonLanguage(state="strict")).states == ("2", "2, 2.0")


@pytest.mark.parametrize(
    "text",
    [
        "x = 9 ** 4000\nx *= x\nx *= x\nx *= x",
        "x = 10 ** 4000\ny = x * x",
        "x = 7 ** 6000",
        "import math\nx = math.lcm(10 ** 4000 + 1, 10 ** 4000 + 3)",
    ],
)
def test_integers_grow_only_so_far_in_either_room(text: str):
    found = trace(text)
    assert found.failure is not None
    assert found.failure.kind == "memory"
    assert len(found.states) == len(found.solution) - (3 if "*=" in text else 1)


@pytest.mark.parametrize("tail", ["x = (", "y = 2\nx = (", "y = 2", ""])
def test_what_follows_a_compound_step_that_sets_the_answer_is_cut_whether_it_parses_or_not(tail: str):
    found = trace(f"n0 = [4]\nif n0:\n    answer = 5\n{tail}")
    assert (found.failure, found.answer, len(found.solution)) == (None, 5, 2)
    failing = trace(f"n0 = []\nif n0:\n    answer = 5\n{tail}")
    assert not failing.has_answer
    assert (failing.failure is not None) == ("(" in tail)


LARGE = "".join(f"x{n} = 1<<13999\n" for n in range(1000))


LCM = ", ".join(f"(1 << 2000) + {n}" for n in range(500))


COSTLY = {
    "a thousand large integers": LARGE,
    "a hundred and ten, and nothing more": "".join(LARGE.splitlines(True)[:110]) + "pass\n" * 1900,
    "a large product": "import math\nx = math.perm(1 << 13999, 1500)",
    "a large multiple": f"import math\nx = math.lcm({LCM})",
    "large decimals": "from decimal import Decimal\n"
    + "".join(f"x{n} = [Decimal('1E+3998')] * 1990\n" for n in range(15)),
    "a signalling NaN": "from decimal import Decimal\nx = [Decimal('sNaN')]\nanswer = x[0]",
    "many variables": "".join(f"a{n}=1\n" for n in range(2040)),
    "many steps": "a=1;" * 2048,
    "many targets": "a,a=" * 2290 + "a",
    "many ends of lines": "\r" * 2048,
    "a long list": "x = [" + "0," * 4600 + "]",
    "a long loop": "for i in x:\n" + " a=1\n" * 2040,
    "large changes": "x = [1.5] * 7000\n" + "x[0] += 1\n" * 1000,
    "texts that cost little to write": "x = ['a'] * 5000\n" + "x.append('b')\n" * 1000,
    "dictionaries": "x = {i: {i: ()} for i in range(1000)}\n" + "x[0] = 1\nx[0] = 2\n" * 700,
    "brackets that never close": "if x:\n" + "  y = (\n" * 1800,
    "errors one behind the other": "def f():\n" + " a,a=a,a\n" * 1140 + "if a:\nif a:\nif a:\n",
    "numbers without a text": "if a:\n" + " a=1\n" * 1800 + f"x=0x{'f' * 3600}\n" * 2,
    "a lone surrogate": "raise ValueError('\\ud800')",
    "one hash for many sets, under many names": "s = {frozenset({k * (2 ** 61 - 1)}) for k in range(1000)}\n"
    + "".join(f"a{n} = s\n" for n in range(14)),
    "one hash for many fractions": "from fractions import Fraction\n"
    "s = {Fraction(1, 3) + k * (2 ** 61 - 1) for k in range(998)}",
    "long texts in a set": "x = {'a' * 40000, 'b'}\nanswer = len(x)",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COSTLY)
def test_no_program_costs_this_process_much_time_or_memory(name: str, no_collecting: None):
    trace("x = [1]")  # starts the workers
    started = time.process_time()
    found = trace(COSTLY[name])
    seconds = time.process_time() - started
    python.forget()
    tracemalloc.start()
    again = trace(COSTLY[name])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(COSTLY[name]) <= parsing.MAX_CHARACTERS
    assert again.states == found.states
    assert seconds < 0.25  # of an idle machine's 0.05
    assert peak < 16 << 20


def test_a_text_of_too_many_signs_is_refused_whatever_they_are():
    for text in ("x = " + "a=a," * 2303, "x = [" + "0," * 4600 + "]"):
        assert trace(text).failure is None or "SyntaxError" not in str(trace(text).failure), text
    for text in ("x = " + "a=a," * 2304, "\N{EURO SIGN}" * 10 + "'" * 4609, "x = [" + "0," * 4606 + "]"):
        found = trace(text)
        assert found.failure is not None
        assert "at most 4,608" in found.failure.message


def test_valid_programs_with_unusual_values_do_not_fail():
    for code, answer in (
        ("x = {'a' * 40000, 'b'}\nanswer = len(x)", 2),
        ("answer = 'ß'.encode('ascii', 'namereplace').decode()", r"\N{LATIN SMALL LETTER SHARP S}"),
        ("from decimal import Decimal\nx = [Decimal('sNaN')]\nanswer = 1", 1),
    ):
        found = trace(code)
        assert found.failure is None, found.failure
        assert found.answer == answer


def test_a_signalling_nan_is_nan_and_no_right_answer():
    found = trace("from decimal import Decimal\nanswer = Decimal('sNaN')")
    assert found.states[-1] == "nan"
    assert not is_correct(found.answer, 1)
    assert not is_correct(found.answer, found.answer)


def test_states_that_do_not_change_are_shared():
    for first in ("x = 1234567", "x = [1234567]"):
        found = trace(f"{first}\npass\nprint(x)\ny = 2")
        assert found.states[0] is found.states[1] is found.states[2]


def test_steps_before_one_that_cannot_be_spelled_are_traced():
    number = f"0x{'f' * 4000}"
    found = trace(f"a = 1\nif a:\n    b = 2\nif b:\n    x = {number}\nc = 3")
    assert found.states == ("1", "1, 2")
    assert found.failure is not None
    assert "(line 4, column 1)" in found.failure.message
    assert len(trace(f"a = 1; x = {number}").solution) == 0


def test_long_text_is_read_once_and_short_text_until_it_parses():
    assert trace("if 1:\n" + "    a = 1\n" * 300 + "(\n" * 3).states == ("1",)
    assert trace("if 1:\n" + "    a = 1\n" * 1500 + "(\n" * 3).states == ()


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
@pytest.mark.parametrize(
    ("where", "text"), [("interpret", "x = 1; y = 2"), ("states_of", "x = [1]"), ("parse", "x")]
)
def test_a_process_at_its_limits_gives_a_failure_not_an_exception(error, where, text, monkeypatch):
    def give_up(*arguments):
        raise error

    python.forget()
    monkeypatch.setattr(straightline.tracing, where, give_up)
    found, other = trace_all([text, text + "\n"])
    for one in (found, other):
        assert one.failure is not None
        assert one.failure.kind == "memory"
        assert one.states == ()
    monkeypatch.undo()
    assert trace(text).states != () or text == "x"  # nothing was remembered


def test_failure_messages_do_nothing_to_a_terminal():
    found = trace("raise ValueError('\\x1b[2J\\x07\\ud800\\u202e' + chr(10) + 'é')")
    assert found.failure is not None
    assert found.failure.message == "ValueError: \\x1b[2J\\x07\\ud800\\u202e\\né"
    assert found.failure.message.isprintable()
