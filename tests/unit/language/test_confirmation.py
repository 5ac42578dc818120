import sys

import pytest
from languages import LastValue

from partway import Problem, PythonLanguage, Solution, SolutionBuffer, trace
from partway.buffer import Rules, Verdict
from partway.errors import ProblemError
from partway.language import PYTHON
from partway.language.language import Trace
from partway.training.account import Ledger

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="workers need fork")

PROBLEM = Problem("p", "?", 6, Solution.parse("x = [1, 2, 3]\nanswer = sum(x)"))
HONEST = "x = [3, 2, 1]\nanswer = sum(x)"


@pytest.mark.parametrize(
    "code",
    [
        HONEST,
        "x = [1]\ny = x\ny.append(2)\ndel x\nz = {1: {2.5, 3}, 'a': (None, y)}\nx = b'a'",
        "from fractions import Fraction\nx = [Fraction(1, 3), 2j, 'é', True]\nanswer = x[0]",
        "x = [1]\ny = x[5]",
        "x = [1]\ny = (",
        "from decimal import Decimal\nx = {1, 2}\nanswer = Decimal('NaN')",
        "for i in range(3):\n    answer = i",
    ],
)
def test_an_honest_program_is_confirmed(code):
    found = trace(code)
    assert found.isolated
    assert PYTHON.confirms(PROBLEM, found)


@pytest.mark.parametrize(
    "code",
    [
        "x = [hash('a')]\nanswer = 6",
        "import statistics\nx = statistics.NormalDist(0, 1).samples(2)\nanswer = 6",
        "x = list({'a', 'b', 'c', 'd', 'e'})\nanswer = 6",
        "answer = str(object())",
    ],
)
def test_a_program_whose_states_hang_on_the_layout_is_not_confirmed(code):
    found = trace(code)
    assert found.failure is None
    assert not PYTHON.confirms(PROBLEM, found)


def forged(found: Trace, **changes: object) -> Trace:
    return found._replace(**changes)


def test_a_forged_record_is_not_confirmed():
    found = trace("x = [1, 2]\nanswer = sum(x)")
    assert not PYTHON.confirms(PROBLEM, forged(found, states=("[1, 2]", "6, [1, 2]")))
    assert not PYTHON.confirms(PROBLEM, forged(found, outcome=(6,)))
    assert not PYTHON.confirms(PROBLEM, forged(found, states=("[1, 2, 3]", found.states[1])))


def test_the_interpreters_traces_need_no_second_run(monkeypatch):
    monkeypatch.setattr("partway.language.python._room", lambda: 1 / 0)
    assert PYTHON.confirms(PROBLEM, trace("x = 1\nanswer = x * 6"))


def test_a_solution_that_runs_differently_a_second_time_is_not_kept():
    lie = forged(trace("x = [1, 2]\nanswer = sum(x)"), states=("[1, 2]", "6, [1, 2]"), outcome=(6,))
    part = forged(trace("y = [1, 2]\nz = y"), states=("[1, 2, 3]", "[1]"))
    buffer = SolutionBuffer.seeded(PROBLEM)
    before = buffer.to_json()
    for found in (lie, part):
        assert buffer.consider(found) is Verdict.NOT_EXECUTABLE
    assert buffer.to_json() == before
    assert buffer.consider(trace(HONEST)) is Verdict.NEW_FULLY_CORRECT


def test_the_first_solution_of_a_problem_without_reference_is_confirmed_too():
    buffer = SolutionBuffer.seeded(Problem("q", "?", 6, None))
    lie = forged(trace("x = [1, 2]\nanswer = sum(x)"), outcome=(6,))
    assert buffer.consider(lie) is Verdict.NOT_EXECUTABLE
    assert buffer.max_length is None


def test_a_reference_that_runs_differently_a_second_time_is_an_error():
    odd = Problem("odd", "?", 3, "x = hash('a')\nanswer = 3")
    with pytest.raises(ProblemError, match="odd: the reference does not do the same when it runs again"):
        SolutionBuffer.seeded(odd)


def test_with_another_answer_variable_and_state_mode_too():
    language = PythonLanguage("result", "strict")
    assert language.confirms(PROBLEM, trace("x = [1.0, 2]\nresult = x[0]", language))


def test_a_language_confirms_by_its_own_states():
    looped = "total = 0\nfor i in range(4):\n    total += i\nanswer = total"
    language = LastValue()
    buffer = SolutionBuffer.seeded(PROBLEM, Rules(length_tolerance=9), language)
    assert trace(looped, language).isolated
    assert buffer.consider(trace(looped, language)) is Verdict.NEW_FULLY_CORRECT
    lie = forged(trace(looped.replace("4", "5"), language), states=("0", "6, 3", "6"), outcome=(6,))
    assert buffer.consider(lie) is Verdict.NOT_EXECUTABLE


def test_refused_samples_are_counted_and_nothing_is_said_if_there_are_none():
    from partway.sample import Sample

    ledger = Ledger()
    sample = Sample("p", "", "x = 1", 3, True, step=1, verdict=Verdict.NOT_EXECUTABLE)
    ledger.add_sample(sample, 5)
    assert "samples/refused" not in ledger.metrics(1)
    ledger.add_sample(sample, 5, executed=True)
    assert ledger.metrics(1)["samples/refused"] == 3
    assert Ledger.from_json(ledger.to_json()) == ledger
