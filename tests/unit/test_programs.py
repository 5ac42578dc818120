"""Programs as a value: checkers, tests as answers, the end of a text, other equivalences and languages."""

import math

import pytest

from languages import Expressions, LastValue, same_expression
from partway import PYTHON, Problem, PythonPrograms, Solution, SolutionBuffer, Verdict, load_problems, trace
from partway.buffer import Rules
from partway.datasets import check_problems
from partway.errors import ConfigError, ProblemError
from partway.execution.checkers import Close, checker_of, exact
from partway.execution.programs import form_of, programs_of


def right(value: object, answer: object, **settings: object) -> bool:
    programs = programs_of(settings)
    return programs.is_correct(trace(f"answer = {value!r}", programs), answer)


def test_checkers_decide_what_is_right():
    assert right(2.00001, 2)
    assert not right(2.00001, 2, checker="exact")
    assert right(2.0, 2, checker="exact")
    assert not right(2.2, 2, checker="close")
    assert right(2.2, 2, checker="close", checker_rel_tol=0.2)
    assert right(2.2, 2, checker="close", checker_rel_tol=0, checker_abs_tol=0.3)
    assert right("y + x", "x + y", checker="languages:same_expression")
    assert not right("y - x", "x + y", checker="languages:same_expression")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"checker": "clos"}, "checker is 'clos', expected default, exact, close, tests or"),
        ({"checker": "nowhere:check"}, "there is no module nowhere"),
        ({"checker": "math:pie"}, "math has no 'pie'"),
        ({"checker": "math:pi"}, "expected a function"),
        ({"checker": "close", "checker_rel_tol": -1}, "checker_rel_tol is -1.0, expected 0 or more"),
        ({"checker": "close", "checker_abs_tol": math.nan}, "checker_abs_tol is nan"),
        ({"answer_variable": "the answer"}, "expected the name of a variable"),
        ({"programs": "languages"}, "expected package.module:name"),
    ],
)
def test_impossible_rules_are_refused_by_name(settings: dict[str, object], message: str):
    with pytest.raises(ConfigError, match=message):
        programs_of(settings)


@pytest.mark.parametrize(
    "programs",
    [
        PYTHON,
        PythonPrograms("result", "set", exact),
        PythonPrograms(checker=Close(0.5, 0.0)),
        PythonPrograms(state="strict", checker=same_expression),
        PythonPrograms(checker=checker_of({"checker": "tests"})),
    ],
)
def test_programs_are_made_again_from_their_settings(programs: PythonPrograms):
    assert programs_of(programs.settings()) == programs


def test_another_language_is_made_again_from_its_settings():
    assert isinstance(programs_of(Expressions().settings()), Expressions)


TESTED = PythonPrograms(checker=checker_of({"checker": "tests"}))
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
    buffer = SolutionBuffer.seeded(DOUBLE, programs=TESTED)
    assert buffer.consider(trace(text, TESTED)) is verdict


def test_with_tests_no_variable_ends_a_solution():
    text = "answer = 1\ndef double(x):\n    return x * 2\n"
    assert len(TESTED.parse(text)) == 2
    assert TESTED.end(text) is None
    assert TESTED.is_correct(trace(text, TESTED), DOUBLE.answer)


def test_problems_with_tests_are_read_and_bad_tests_complained_about():
    row = {
        "question": "Double it.",
        "answer": ["assert f(1) == 2"],
        "solution": "def f(x):\n    return 2 * x",
    }
    assert load_problems([row], programs=TESTED)[0].answer == ["assert f(1) == 2"]
    wrong = row | {"answer": ["assert f(1) == 3"]}
    assert "never passes its tests" in check_problems([wrong], programs=TESTED).bad_rows[0].reason
    for answer in (7, [], [3], ["assert f(1) == 2", ["f(1)"]]):
        [bad] = check_problems([row | {"answer": answer}], programs=TESTED).bad_rows[:1]
        assert "expected a list of assertions" in bad.reason
    with pytest.raises(ProblemError, match="cannot be checked: expected a list of assertions"):
        SolutionBuffer.seeded(replace_answer(DOUBLE, 4), programs=TESTED)


def replace_answer(problem: Problem, answer: object) -> Problem:
    return Problem(problem.id, problem.question, answer, problem.reference)


def test_the_end_is_found_in_one_pass():
    assert PYTHON.end("x = (\n" + "answer(1)\n" * 50_000) is None
    assert PYTHON.end("answer(1)\n" * 8_000 + "answer = 1\n") == 8_000 * 10 + 11


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("answer = max(\n  1,\n  2)\nn1 = 1\n", 24),
        ("n0 = 1; answer = 2\n", 19),
        ("a, answer = 1, 2\n", 17),
        ("answer = = 2\n", None),
        ("x = '''\nanswer = 1\n'''\n", None),
    ],
)
def test_the_end_is_where_a_whole_step_assigns_the_answer(text: str, end: int | None):
    assert PYTHON.end(text) == end


def test_an_answer_counts_only_if_nothing_failed():
    found = trace("n0 = 1\nanswer = n0 / 0")
    assert (found.has_answer, found.answer) == (False, None)
    assert not PYTHON.is_correct(found._replace(outcome=(1,)), 1)


def test_text_that_is_no_solution_stands_for_itself():
    assert form_of("n0 = = 1", PYTHON) == "n0 = = 1"
    assert form_of("n0=1", PYTHON) == Solution(("n0 = 1",))


def test_another_equivalence_is_one_class():
    problem = Problem("p", "?", 12, "a = 2\nb = a * 3\nanswer = b * 2")
    text = "junk = 9\nb = 6\nanswer = b - 1"
    assert SolutionBuffer.seeded(problem).consider(trace(text)) is Verdict.INCORRECT
    programs = LastValue()
    buffer = SolutionBuffer.seeded(problem, Rules(), programs)
    assert buffer.consider(trace(text, programs)) is Verdict.NEW_PARTIALLY_CORRECT
    assert buffer.partially_correct == (Solution(("junk = 9", "b = 6")),)


def test_another_language_is_one_class():
    toy = Expressions()
    problem = Problem("p", "What is 2 * 3 + 1?", 7, toy.parse("2 * 3\n_ + 1"))
    buffer = SolutionBuffer.seeded(problem, Rules(), toy)
    assert buffer.consider(trace("3 * 2\n_ + 1", toy)) is Verdict.NEW_FULLY_CORRECT
    assert buffer.consider(trace("3 + 3\n_ + 2", toy)) is Verdict.NEW_PARTIALLY_CORRECT
    assert buffer.partially_correct == (Solution(("3 + 3",)),)
    assert buffer.consider(trace("3 +\n1", toy)) is Verdict.NOT_EXECUTABLE
