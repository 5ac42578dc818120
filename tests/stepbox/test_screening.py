"""Programs are screened before they are sent, or inside the walls: what may run is the same."""

import sys
import warnings

import pytest

from stepbox import pool, run, screen
from stepbox.channel import NOTHING_REFUSED, UNSCREENED
from stepbox.screen import screened

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls differ elsewhere")

PROGRAMS = [
    ("x = [1]", "answer = x[0]"),
    ("x = [1]", "y = x.__class__", "answer = 1"),
    ("import os",),
    ("x = [1]", "answer = eval('2')"),
    ("x = [eval]", "eval = 3"),
    ("x = [1]", "answer = 2", "y = x.__class__"),
    ("x = [1 / 0]", "y = x.__class__"),
    ("x = [1]", "return x"),
    ("x = 'a' is 'a'", "answer = [2]"),
    ("x = ['\\d']", "answer = 1if x else 2"),
    ("x = '\\d'.__class__",),
    ("def answer():\n    pass", "y = x.__class__"),
]


def test_what_may_run_is_a_beginning_and_the_refusal_is_of_the_next_step():
    assert screened(PROGRAMS[0]) == (PROGRAMS[0], NOTHING_REFUSED)
    steps, (kind, message) = screened(PROGRAMS[1])
    assert (steps, kind) == (PROGRAMS[1][:1], "forbidden")
    assert "__class__" in message


def test_a_later_step_may_bind_what_an_earlier_one_reads():
    assert screened(("x = [eval]", "eval = 3"))[1] == NOTHING_REFUSED
    assert screened(("x = [eval]",)) == ((), ("forbidden", "'eval' is not available"))


def test_what_python_would_warn_of_is_left_to_its_process():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert screened(("x = ['\\d']",)) == (("x = ['\\d']",), UNSCREENED)
        assert screened(("x = 'a\\n'",))[1] == NOTHING_REFUSED
    assert heard == []


def test_long_programs_and_those_that_do_not_parse_are_left_to_their_process():
    long = tuple(f"x{i} = [{i}]" for i in range(screen.MAX_CHARACTERS))
    assert screened(long) == (long, UNSCREENED)
    assert screened(("x = (",)) == (("x = (",), UNSCREENED)


@on_linux
def test_a_program_ends_the_same_wherever_it_is_screened(monkeypatch: pytest.MonkeyPatch):
    here = run(PROGRAMS, until="answer")
    monkeypatch.setattr(pool, "screened", lambda steps: (steps, UNSCREENED))
    assert here == run(PROGRAMS, until="answer")
    kinds = [found.failure and found.failure.kind for found in here]
    assert kinds[:5] == [None, "forbidden", "forbidden", "forbidden", "error"]


@on_linux
def test_a_program_whose_first_step_is_refused_needs_no_process(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pool, "_SHARED", pool._Shared())
    (found,) = run([("import os", "answer = 1")], until="answer")
    assert found.failure is not None
    assert (found.failure.kind, found.failure.step) == ("forbidden", 0)
    assert not pool._SHARED.get().workers
