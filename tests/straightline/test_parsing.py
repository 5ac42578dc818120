import ast
import sys
import threading
import time
import tracemalloc
import warnings

import pytest

from straightline import BoundedCache, parse, parsing, trace
from straightline.interpreter import lowered


def test_ten_megabytes_of_text_are_refused_at_once():
    started = time.process_time()
    found = trace("x = 1\n" * 1_700_000)
    assert found.failure is not None
    assert "at most 16,384" in found.failure.message
    assert time.process_time() - started < 1


def test_a_text_of_too_many_statements_is_refused_however_short_they_are():
    for most in ("a=1;", "a=1\n", "a=1\r"):
        assert trace(most * 2048).failure is None
        found = trace(most * 2049)
        assert found.failure is not None
        assert "at most 2,048" in found.failure.message


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


def test_long_text_that_never_parses_is_given_up_soon():
    started = time.process_time()
    found = trace("if x:\n" + "  y = (\n" * 10_000)
    assert found.failure is not None
    assert time.process_time() - started < 5


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
