"""A program's trace does not depend on its company: alone, before or behind any hostile one."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz import ORDINARY
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partway import Trace
from partway.language import trace_all
from partway.language.python import forget
from stepbox import pool

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls differ elsewhere")

CORPUS = Path(__file__).parent.parent / "hostile.jsonl"
HOSTILE = [
    program["code"]
    for program in map(json.loads, CORPUS.read_text(encoding="utf-8").splitlines())
    if program["group"] not in ("endless", "source")
]


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(pool, "DEFAULT_LIMITS", pool.Limits(cpu_seconds=0.4))
    yield
    forget()


def told(found: Trace) -> object:
    """What must not depend on company; which limit is met first, and at which step, may."""
    if found.failure is not None and found.failure.kind in ("timeout", "memory"):
        return "exhausted"
    return found.states, found.failure, found.solution


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(ORDINARY),
    st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=3),
    st.lists(st.sampled_from(HOSTILE), max_size=2),
)
def test_a_trace_is_the_same_alone_and_among_hostile_programs(program, before, behind):
    forget()
    alone = [told(found) for text in (program, *before) for found in trace_all([text])]
    forget()
    together = trace_all([*before, program, *behind])
    assert told(together[len(before)]) == alone[0]
    assert [told(found) for found in together[: len(before)]] == alone[1:]


def test_when_garbage_would_be_collected_does_not_depend_on_company():
    """Clean-up code of what is caught in a cycle runs never, instead of at a step that nobody can foresee."""
    leaves_cycles = (
        "def g(k):\n    global last\n    try:\n        yield k\n    finally:\n        last = [k]\n"
        "for i in range(2000):\n    h = g(i)\n    next(h)\n    c = [h]\n    c.append(c)\n    del c, h\n"
        "answer = 1"
    )
    company = "total = {}\nfor i in range(3):\n    total += i"
    traced = []
    for size in range(6):
        forget()
        traced.append(trace_all([*(company.format(100 * size + n) for n in range(size)), leaves_cycles])[-1])
    assert {told(found) for found in traced} == {told(traced[0])}
    assert traced[0].has_answer
