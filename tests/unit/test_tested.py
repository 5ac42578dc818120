"""Functions that tests check: partial correctness inside the function under test."""

from dataclasses import replace

import pytest

from partway import Problem, PythonPrograms, Solution, SolutionBuffer, Verdict, trace
from partway.buffer import Rules
from partway.execution.checkers import TESTS
from partway.reports.explorer.problem_view import known_of, typed_view
from partway.rewards import trace_credits

TESTED = PythonPrograms(checker=TESTS, program_forms="written")
AREA = """\
def area(width, height, border=1):
    w = width - 2 * border
    h = height - 2 * border
    return w * h"""
TESTS_OF_AREA = ["assert area(10, 9) == 56", ["area(5, 6, 2)", 2]]


def problem(reference: str = AREA, tests: object = TESTS_OF_AREA) -> Problem:
    return Problem("area", "What is left inside a border?", tests, TESTED.parse(reference))


def consider(
    text: str, rules: Rules | None = None, of: Problem | None = None
) -> tuple[Verdict, SolutionBuffer]:
    buffer = SolutionBuffer.seeded(of or problem(), rules, TESTED)
    return buffer.consider(trace(text, TESTED)), buffer


def test_the_statements_of_the_function_are_steps_and_the_text_is_what_is_written():
    solution = TESTED.parse(AREA)
    assert solution.text == AREA
    assert solution.steps[0] == "def area(width, height, border=1):\n    w = width - 2 * border"
    assert len(solution) == 3
    assert TESTED.parse(solution.prefix(2).text) == solution.prefix(2)


def test_states_are_what_the_arguments_of_the_first_test_lead_to():
    found = TESTED.entered(trace(AREA, TESTED), TESTS_OF_AREA)
    assert found.states == ("1, 10, 8, 9", "1, 10, 7, 8, 9", "1, 10, 56, 7, 8, 9")
    assert found.answer == 56
    assert trace(AREA, TESTED).states == ("", "", "")  # nobody has said what to call it with


def test_a_function_that_begins_right_and_returns_something_wrong_is_partially_correct():
    wrong = "def area(a, b, k=1):\n    high = b - 2 * k\n    wide = a - 2 * k\n    return wide + high"
    verdict, buffer = consider(wrong)
    assert verdict is Verdict.NEW_PARTIALLY_CORRECT
    assert buffer.partially_correct == (TESTED.parse(wrong).prefix(2),)
    assert buffer.consider(trace(wrong, TESTED)) is Verdict.KNOWN_PARTIALLY_CORRECT


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("def area(a, b, k=1):\n    return (a - 2 * k) * (b - 2 * k)", Verdict.NEW_FULLY_CORRECT),
        (AREA, Verdict.KNOWN_FULLY_CORRECT),
        ("def area(a, b, k=1):\n    return a * b", Verdict.INCORRECT),
        ("def area(a, b, k=1):\n    x = a\n    return a * b", Verdict.INCORRECT),
        ("def surface(a, b, k=1):\n    return (a - 2 * k) * (b - 2 * k)", Verdict.INCORRECT),
        ("def area(a, b, k=1):\n    return a / 0", Verdict.NOT_EXECUTABLE),
        ("def area(a):\n    return 56", Verdict.INCORRECT),
        ("def area(*sides):\n    return 56", Verdict.INCORRECT),
    ],
)
def test_verdicts(text: str, verdict: Verdict):
    assert consider(text)[0] is verdict


def test_the_step_that_returns_is_no_beginning_whatever_the_variable_is_called():
    wrong = "def area(a, b, k=1):\n    answer = a - 2 * k\n    return answer"
    found = TESTED.entered(trace(wrong, TESTED), TESTS_OF_AREA)
    assert found.has_answer
    assert found.answer == 8
    assert consider(wrong)[1].partially_correct == (TESTED.parse(wrong).prefix(1),)


def test_text_cut_off_in_the_function_keeps_its_beginning():
    verdict, buffer = consider("def area(a, b, k=1):\n    h = b - 2 * k\n    w = a - 2 * k\n    return (w *")
    assert verdict is Verdict.NEW_PARTIALLY_CORRECT
    assert len(buffer.partially_correct[0]) == 2


def test_arguments_alone_reach_no_state():
    reference = "def area(w, h):\n    import math\n    s = w * h\n    return math.floor(s)"
    of = problem(reference, ["assert area(2, 3) == 6"])
    assert consider("def area(x, y):\n    import math\n    return 7", of=of)[0] is Verdict.INCORRECT


def test_a_function_may_call_itself_and_helpers_that_stand_before_it():
    reference = (
        "import math\n\ndef half(x):\n    return x / 2\n\n"
        "def f(n):\n    h = half(n)\n    rest = f(n - 1) if n > 1 else 0\n    return math.floor(h) + rest"
    )
    of = problem(reference, ["assert f(4) == 4"])
    found = TESTED.entered(trace(reference, TESTED), of.answer)
    assert found.failure is None
    assert found.states == ("", "", "2, 4", "2, 2, 4", "2, 2, 4, 4")
    wrong = "def half(x):\n    return x / 2\n\ndef f(k):\n    a = half(k)\n    return a"
    assert consider(wrong, of=of)[0] is Verdict.NEW_PARTIALLY_CORRECT


@pytest.mark.parametrize(
    "text",
    [
        "def f(n):\n    if n > 2:\n        return 1\n    return 0",
        "def f(n):\n    for i in [n]:\n        yield i",
        "@str\ndef f(n):\n    return n",
    ],
)
def test_a_function_with_several_ways_out_or_ways_of_its_own_stays_one_step(text: str):
    assert len(TESTED.parse(text)) == 1


def test_a_right_function_whose_body_cannot_run_alone_is_kept_without_states():
    reference = "def f(n):\n    f.calls = n\n    return n"
    of = problem(reference, ["assert f(4) == 4"])
    assert SolutionBuffer.seeded(of, programs=TESTED).fully_correct == (of.reference,)


def test_only_its_writer_ends_a_text_that_may_have_several_functions():
    assert TESTED.end("def half(x):\n    return x / 2\n") is None
    assert not TESTED.may_end("    return x")


def test_live_values_and_stitching_work_inside_the_function():
    sample = "def area(a, b, k=1):\n    extra = 3\n    wide = a - 2 * k\n    return wide"
    verdict, _ = consider(sample)
    assert verdict is Verdict.INCORRECT
    live = Rules(equivalence="live", length_tolerance=1)
    verdict, buffer = consider(sample, live)
    assert verdict is Verdict.NEW_PARTIALLY_CORRECT
    (witness,) = buffer.witnesses.values()
    assert witness.completion[-1].startswith("    return ")
    verdict, buffer = consider(sample, replace(live, stitch=True))
    assert verdict is Verdict.NEW_STITCHED
    (stitched,) = buffer.stitched
    assert TESTED.is_correct(trace(stitched, TESTED), TESTS_OF_AREA)
    restored = SolutionBuffer.from_json(buffer.problem, buffer.to_json(), TESTED)
    assert restored.stitched == buffer.stitched
    assert restored.consider(trace(sample, TESTED)) is Verdict.KNOWN_PARTIALLY_CORRECT


def test_rewards_give_credit_for_a_right_beginning_of_a_function():
    wrong = "def area(a, b, k=1):\n    high = b - 2 * k\n    wide = a - 2 * k\n    return wide + high"
    scores = trace_credits([wrong, AREA], [TESTS_OF_AREA] * 2, [AREA] * 2, alpha=0.6, programs=TESTED)
    assert scores == [pytest.approx(0.4), 1.0]


def test_without_the_key_a_function_is_one_step_as_before():
    programs = PythonPrograms(checker=TESTS)
    assert len(programs.parse(AREA)) == 1
    assert isinstance(programs.parse(AREA), Solution)


def test_the_explorer_shows_states_inside_the_function():
    wrong = "def area(a, b, k=1):\n    wide = a - 2 * k\n    high = b - 2 * k\n    return wide + high"
    buffer = SolutionBuffer.seeded(problem(), None, TESTED)
    known = known_of(problem(), buffer)
    row = known.compared(trace(wrong, TESTED))
    assert (row["matching"], row["is_right"], row["answer"]) == (2, False, "15")
    assert [step["state"] for step in row["steps"][:2]] == [0, 1], "the reference's own states"
    typed = typed_view(wrong, buffer, known)
    assert (typed["verdict"], typed["matching"]) == ("new_partially_correct", 2)
    assert typed["places"] == [(0, 2)]
