"""Functions that tests check: partial correctness inside the function under test."""

import pytest

from partway import Problem, SolutionBuffer, Verdict, load_problems, trace
from partway.buffer import Rules
from partway.errors import ProblemError
from partway.problems import read_problems
from partway.rewards import trace_credits
from partway.written.tested import TestedLanguage
from runexplorer.problem_view import known_of, typed_view

TESTED = TestedLanguage()
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
    return buffer.consider(trace(text, TESTED, buffer.problem)), buffer


def test_the_statements_of_the_function_are_steps_and_the_text_is_what_is_written():
    solution = TESTED.parse(AREA)
    assert solution.text == AREA
    assert solution.steps[0] == "def area(width, height, border=1):\n    w = width - 2 * border"
    assert len(solution) == 3
    assert TESTED.parse(solution.prefix(2).text) == solution.prefix(2)


def test_states_are_what_the_arguments_of_the_first_test_lead_to():
    found = trace(AREA, TESTED, problem())
    assert found.states == ("1, 10, 8, 9", "1, 10, 7, 8, 9", "1, 10, 56, 7, 8, 9")
    assert found.answer == 56
    assert trace(AREA, TESTED).states == ("", "", "")  # nobody has said what to call it with


def test_a_function_that_begins_right_and_returns_something_wrong_is_partially_correct():
    wrong = "def area(a, b, k=1):\n    high = b - 2 * k\n    wide = a - 2 * k\n    return wide + high"
    verdict, buffer = consider(wrong)
    assert verdict is Verdict.NEW_PARTIALLY_CORRECT
    assert buffer.partially_correct == (TESTED.parse(wrong).prefix(2),)
    assert buffer.consider(trace(wrong, TESTED, buffer.problem)) is Verdict.KNOWN_PARTIALLY_CORRECT


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
    found = trace(wrong, TESTED, problem())
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
    found = trace(reference, TESTED, of)
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
    assert SolutionBuffer.seeded(of, language=TESTED).fully_correct == (of.reference,)


def test_only_its_writer_ends_a_text_that_may_have_several_functions():
    assert TESTED.end("def half(x):\n    return x / 2\n") is None


def test_rewards_give_credit_for_a_right_beginning_of_a_function():
    wrong = "def area(a, b, k=1):\n    high = b - 2 * k\n    wide = a - 2 * k\n    return wide + high"
    trace("x = [1]")  # says so if there is no sandbox, while rewards are None
    scores = trace_credits([wrong, AREA], [problem()] * 2, alpha=0.6, language=TESTED)
    assert scores == [pytest.approx(0.4), 1.0]


def test_the_explorer_shows_states_inside_the_function():
    wrong = "def area(a, b, k=1):\n    wide = a - 2 * k\n    high = b - 2 * k\n    return wide + high"
    buffer = SolutionBuffer.seeded(problem(), None, TESTED)
    known = known_of(problem(), buffer)
    row = known.compared(trace(wrong, TESTED, problem()))
    assert (row["matching"], row["is_right"], row["answer"]) == (2, False, "15")
    assert [step["state"] for step in row["steps"][:2]] == [0, 1], "the reference's own states"
    typed = typed_view(wrong, buffer, known)
    assert (typed["verdict"], typed["matching"]) == ("new_partially_correct", 2)
    assert typed["places"] == [(0, 2)]


DOUBLE = Problem(
    "double",
    "Double a number or a text.",
    ["assert double(2) == 4", ["double('a')", "aa"]],
    "def double(x):\n    return x * 2",
)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("def double(y):\n    return y + y", Verdict.NEW_FULLY_CORRECT),
        ("def double(y):\n    return 4", Verdict.INCORRECT),
        ("def twice(y):\n    return y + y", Verdict.INCORRECT),
        ("x = 1 / 0", Verdict.NOT_EXECUTABLE),
        ("", Verdict.NOT_EXECUTABLE),
    ],
)
def test_answers_can_be_tests_that_the_solution_has_to_pass(text: str, verdict: Verdict):
    buffer = SolutionBuffer.seeded(DOUBLE, language=TESTED)
    assert buffer.consider(trace(text, TESTED, DOUBLE)) is verdict


def test_with_tests_no_variable_ends_a_solution():
    text = "answer = 1\ndef double(x):\n    return x * 2\n"
    assert len(TESTED.parse(text)) == 2
    assert TESTED.end(text) is None
    assert TESTED.is_correct(DOUBLE, trace(text, TESTED, DOUBLE))


def test_problems_with_tests_are_read_and_bad_tests_complained_about():
    row = {
        "question": "Double it.",
        "answer": ["assert f(1) == 2"],
        "solution": "def f(x):\n    return 2 * x",
    }
    assert load_problems([row], language=TESTED)[0].answer == ["assert f(1) == 2"]
    wrong = row | {"answer": ["assert f(1) == 3"]}
    assert "never passes its tests" in read_problems([wrong], language=TESTED).bad_rows[0].reason
    for answer in (7, [], [3], ["assert f(1) == 2", ["f(1)"]]):
        [bad] = read_problems([row | {"answer": answer}], language=TESTED).bad_rows[:1]
        assert "expected a list of assertions" in bad.reason
    with pytest.raises(ProblemError, match="cannot be checked: expected a list of assertions"):
        SolutionBuffer.seeded(replace_answer(DOUBLE, 4), language=TESTED)


def replace_answer(problem: Problem, answer: object) -> Problem:
    return Problem(problem.id, problem.question, answer, problem.reference)
