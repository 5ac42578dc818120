import ast
import math
import sys
import threading
import time
import tracemalloc
import warnings

import pytest

from partway import PythonLanguage, parsing, trace, trace_all
from partway.arithmetic import NotCovered
from partway.caching import BoundedCache
from partway.language import is_correct, tracing
from partway.language.interpreter import lowered
from partway.language.traces import Failure
from partway.language.values import states_of
from partway.parsing import parse


def interpreted(text: str):
    return tracing.interpreted(parse(text, "answer"), "multiset", "answer")


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
    assert not found._replace(failure=Failure("error", "ZeroDivisionError: division by zero", 2)).has_answer
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
        ("10 ** 500 % 7", 10**500 % 7),
        ("math.lcm(4, 6, 10)", 60),
        ("math.gcd(12, 18, 27)", 3),
        ("math.factorial(200)", math.factorial(200)),
        ("math.perm(10 ** 20, 3)", math.perm(10**20, 3)),
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
        interpreted(text)


def test_many_solutions_are_traced_in_order_and_known_ones_once():
    texts = ["answer = 1", "answer = 2", "answer = 1"]
    first, second, third = trace_all(texts)
    assert (first.answer, second.answer) == (1, 2)
    assert third is first


def test_states_in_the_other_modes():
    assert trace("x = 2\ny = 2.0", PythonLanguage(state="set")).states == ("2", "2")
    assert trace("x = 2\ny = 2.0", PythonLanguage(state="strict")).states == ("2", "2, 2.0")


def test_ten_megabytes_of_text_are_refused_at_once():
    started = time.process_time()
    found = trace("x = 1\n" * 1_700_000)
    assert found.failure is not None
    assert "at most 16,384" in found.failure.message
    assert time.process_time() - started < 1


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
    tracing.forget()
    tracemalloc.start()
    again = trace(COSTLY[name])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(COSTLY[name]) <= parsing.MAX_CHARACTERS
    assert again.states == found.states
    assert seconds < 0.25  # of an idle machine's 0.05
    assert peak < 16 << 20


def test_a_text_of_too_many_statements_is_refused_however_short_they_are():
    for most in ("a=1;", "a=1\n", "a=1\r"):
        assert trace(most * 2048).failure is None
        found = trace(most * 2049)
        assert found.failure is not None
        assert "at most 2,048" in found.failure.message


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


@pytest.mark.parametrize("mode", ["multiset", "set", "strict"])
def test_states_end_where_they_would_be_too_large(mode, monkeypatch):
    monkeypatch.setattr("partway.language.values.MAX_STATES_TEXT", 100)
    changes = [{f"x{n}": (n + 10,)} for n in range(20)]
    states = states_of(changes, mode)
    assert sum(map(len, states)) <= 100 < sum(map(len, states)) + len(states[-1]) + 4
    assert states == tuple(", ".join(str(n) for n in range(10, 11 + i)) for i in range(len(states)))
    assert len(states_of([changes[0], *[{}] * 500], mode)) == 501


def test_states_that_do_not_change_are_shared():
    for first in ("x = 1234567", "x = [1234567]"):
        found = trace(f"{first}\npass\nprint(x)\ny = 2")
        assert found.states[0] is found.states[1] is found.states[2]


def test_the_cache_of_lines_drops_old_ones_before_it_is_too_large(monkeypatch):
    small = BoundedCache(500_000, parsing._bytes_of)
    monkeypatch.setattr(parsing, "known_lines", small)
    most = 0
    for number in range(1_000):
        parse(f"x = {number}\ny = [x, {number}]", "answer")
        most = max(most, len(small))
        assert len(small) * 1_000 <= 500_000
    assert small.get("x = 999") is not None
    assert small.get("x = 0") is None
    assert most > 50


LINES = {
    "a number": "x{} = 1",
    "two variables": "x{} = n0 * n1",
    "many variables": "x{} = " + " + ".join(f"a{n} * b{n}" for n in range(20)),
    "brackets": "x{} = " + "(" * 40 + "a" + " + b)" * 40,
    "signs": "x{} = " + "-" * 250 + "a",
    "a list": "x{} = [" + "0, " * 90 + "1]",
    "a call": "x{} = round(t0, 2)",
    "calls": "x{} = " + "abs(" * 40 + "1" + ")" * 40,
    "other signs": "x{} = " + "~" * 250 + "a",
    "numbers": "x{} = max(1, 2) + " + " + ".join("1" * 70),
    "words": "x{} = " + "not " * 70 + "a",
}


@pytest.mark.parametrize("name", LINES)
def test_lines_in_the_cache_are_counted_for_what_they_take(name: str):
    lines = [LINES[name].format(number) for number in range(100)]
    tracemalloc.start()
    found = {line: parsing.parse_line(line) for line in lines}
    for statement in found.values():
        lowered(statement)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 1.1 * sum(parsing._bytes_of(line, statement) for line, statement in found.items())


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


def test_long_text_that_never_parses_is_given_up_soon():
    started = time.process_time()
    found = trace("if x:\n" + "  y = (\n" * 10_000)
    assert found.failure is not None
    assert time.process_time() - started < 5


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
@pytest.mark.parametrize(
    ("where", "text"), [("interpret", "x = 1; y = 2"), ("states_of", "x = [1]"), ("parse", "x")]
)
def test_a_process_at_its_limits_gives_a_failure_not_an_exception(error, where, text, monkeypatch):
    def give_up(*arguments):
        raise error

    tracing.forget()
    monkeypatch.setattr(tracing, where, give_up)
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


QUIET = ["x = 'a\\n'", "for i in range(3):\n    x = i"]
LOUD = ["x = '\\d'", "x = 1if 1 else 2", "x = [0xfor 1]", "x = b'\\u1'"]  # Python warns of each


@pytest.mark.parametrize(
    ("action", "text"), [(a, text) for a in ("error", "always") for text in QUIET + LOUD]
)
def test_what_python_warns_of_is_no_news_of_ours_and_no_error(action, text):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter(action)
        before = list(warnings.filters)
        assert len(parsing.parse_tree(text).body) == 1
        assert warnings.filters == before
    assert heard == []


def test_warnings_of_the_process_stay_as_they_are_while_threads_trace():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        before, done = list(warnings.filters), threading.Event()

        def trace_all_the_time(number: int) -> None:
            while not done.is_set():
                for text in QUIET + LOUD:
                    parsing.parse_tree(f"{text}\ny = {number}")

        threads = [threading.Thread(target=trace_all_the_time, args=[number]) for number in range(8)]
        usual = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)  # threads take turns as often as they can
        try:
            for thread in threads:
                thread.start()
            for _ in range(500):
                warnings.warn("the user's own", stacklevel=1)
        finally:
            done.set()
            for thread in threads:
                thread.join()
            sys.setswitchinterval(usual)
        assert warnings.filters == before
    assert [str(one.message) for one in heard] == ["the user's own"] * 500


def test_a_text_is_parsed_again_where_another_thread_parsed_at_the_same_moment(monkeypatch):
    usual, calls = ast.parse, []

    def disturbed_once(*given):
        calls.append(given)
        if len(calls) == 1:
            raise SystemError("AST constructor recursion depth mismatch (before=18, after=16)")
        return usual(*given)

    monkeypatch.setattr(ast, "parse", disturbed_once)
    assert len(parsing.parse_tree("x = 1").body) == 1
    assert len(calls) == 2
