"""The room for general programs: what `stepbox` says, in partway's words."""

import sys

import pytest

import stepbox
from partway import registry, trace
from partway.errors import SandboxError
from partway.language import python
from partway.sandbox.room import ALLOW_WEAK, run
from stepbox import RISK, BoxError, WeakBox, wire
from straightline import Failure, arithmetic

workers_only = pytest.mark.skipif(sys.platform == "win32", reason="workers need fork")


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    python.forget()
    monkeypatch.delenv(ALLOW_WEAK, raising=False)


def fails(monkeypatch, error):
    def give_up(*arguments, **options):
        raise error

    monkeypatch.setattr(stepbox, "run", give_up)


@workers_only
def test_programs_come_back_as_changes_and_failures_of_traces():
    first, second = run([("x = [1]", "answer = x[0]", "y = 2"), ("x = [1]", "y = x[1]")], until="answer")
    assert first == (({"x": ([1],)}, {"answer": (1,)}), None)
    assert second.changes == ({"x": ([1],)},)
    assert second.failure == Failure("error", "IndexError: list index out of range", 1)


@workers_only
def test_a_value_without_content_is_compared_by_its_type():
    assert trace("x = iter([1])\ny = [iter([2])]").states == (
        "<list_iterator>",
        "<list_iterator>, [<list_iterator>]",
    )


def test_both_rooms_draw_the_line_for_integers_at_the_same_place():
    assert arithmetic.MAX_INTEGER_BITS == wire.MAX_INTEGER_BITS


def test_without_walls_a_program_is_refused_with_the_risk_and_the_way_out(monkeypatch):
    fails(monkeypatch, WeakBox(f"no program is run on this system: {RISK}"))
    with pytest.raises(
        SandboxError, match=f"{RISK}; --allow-weak-sandbox or {ALLOW_WEAK}=1 accepts that risk"
    ):
        trace("x = [1]")
    assert trace("x = 1").states == ("1",)  # the interpreter needs none


@pytest.mark.parametrize(("answer", "allowed"), [("1", True), ("0", False), ("", False)])
def test_who_accepts_a_weak_sandbox_gets_it(answer, allowed, monkeypatch):
    asked = []
    monkeypatch.setenv(ALLOW_WEAK, answer)
    monkeypatch.setattr(stepbox, "run", lambda programs, **options: asked.append(options["allow_weak"]) or [])
    run([], until="answer")
    assert asked == [allowed]


def test_a_box_that_cannot_be_used_is_an_error_with_advice(monkeypatch):
    fails(monkeypatch, BoxError("no isolated worker can be started (no memory)"))
    with pytest.raises(SandboxError, match=r"started \(no memory\): partway doctor"):
        trace("x = [1]")


def test_without_this_folder_general_programs_say_what_they_need_and_arithmetic_runs(monkeypatch):
    monkeypatch.setattr(registry, "parts", lambda kind: {})
    with pytest.raises(SandboxError, match="more than straight-line arithmetic needs the part 'sandbox'"):
        trace("x = [1]")
    assert trace("x = 1\nanswer = x * 2").answer == 2
