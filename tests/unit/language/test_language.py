"""Programs as a value: checkers, tests as answers, the end of a text, other equivalences and languages."""

import math

import pytest
from languages import Expressions, LastValue, same_expression

from partway import PYTHON, Problem, PythonLanguage, Solution, SolutionBuffer, Verdict, trace
from partway.buffer import Rules
from partway.errors import ConfigError
from partway.language.language import Language, form_of
from partway.language.named import exact, language_of, settings_of


def right(value: object, answer: object, **settings: object) -> bool:
    language = language_of(settings)
    return language.is_correct(Problem("p", "?", answer), trace(f"answer = {value!r}", language))


def test_a_language_is_ten_methods_and_each_is_explained():
    methods = {name: one for name, one in vars(Language).items() if not name.startswith("_")}
    del methods["metrics"]  # names of what its evaluations also list
    assert len(methods) == 10
    assert [name for name, one in methods.items() if not one.__doc__] == []


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
        ({"checker": "clos"}, "checker is 'clos', expected default, close, exact or"),
        ({"checker": "nowhere:check"}, "there is no module nowhere"),
        ({"checker": "math:pie"}, "math has no 'pie'"),
        ({"checker": "math:pi"}, "expected a function"),
        ({"checker": "close", "checker_rel_tol": -1}, "checker_rel_tol is -1, expected 0 or more"),
        ({"checker": "close", "checker_abs_tol": math.nan}, "checker_abs_tol is nan"),
        ({"answer_variable": "the answer"}, "expected the name of a variable"),
        ({"language": "pyton"}, "'pyton' is not one of the languages: python.* did you mean 'python'"),
        ({"language": "languages:"}, "expected package.module:name"),
        (
            {"language_args": {"stat": "set"}},
            "stat is not a setting of the language python; did you mean",
        ),
    ],
)
def test_impossible_rules_are_refused_by_name(settings: dict[str, object], message: str):
    with pytest.raises(ConfigError, match=message):
        language_of(settings)


@pytest.mark.parametrize(
    "language",
    [
        PYTHON,
        PythonLanguage("result", "set", exact),
        PythonLanguage(checker="close", checker_rel_tol=0.5),
        PythonLanguage(state="strict", checker=same_expression),
    ],
)
def test_programs_are_made_again_from_their_settings(language: PythonLanguage):
    again = language_of(settings_of(language))
    assert type(again) is type(language)
    assert settings_of(again) == settings_of(language)


def test_another_language_is_made_again_from_its_settings():
    assert isinstance(language_of(settings_of(Expressions())), Expressions)


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
    assert not PYTHON.is_correct(Problem("p", "?", 1), found._replace(outcome=(1,)))


def test_text_that_is_no_solution_stands_for_itself():
    assert form_of("n0 = = 1", PYTHON) == "n0 = = 1"
    assert form_of("n0=1", PYTHON) == Solution(("n0 = 1",))


def test_another_equivalence_is_one_class():
    problem = Problem("p", "?", 12, "a = 2\nb = a * 3\nanswer = b * 2")
    text = "junk = 9\nb = 6\nanswer = b - 1"
    assert SolutionBuffer.seeded(problem).consider(trace(text)) is Verdict.INCORRECT
    language = LastValue()
    buffer = SolutionBuffer.seeded(problem, Rules(), language)
    assert buffer.consider(trace(text, language)) is Verdict.NEW_PARTIALLY_CORRECT
    assert buffer.partially_correct == (Solution(("junk = 9", "b = 6")),)


def test_another_language_is_one_class():
    toy = Expressions()
    problem = Problem("p", "What is 2 * 3 + 1?", 7, toy.parse("2 * 3\n_ + 1"))
    buffer = SolutionBuffer.seeded(problem, Rules(), toy)
    assert buffer.consider(trace("3 * 2\n_ + 1", toy)) is Verdict.NEW_FULLY_CORRECT
    assert buffer.consider(trace("3 + 3\n_ + 2", toy)) is Verdict.NEW_PARTIALLY_CORRECT
    assert buffer.partially_correct == (Solution(("3 + 3",)),)
    assert buffer.consider(trace("3 +\n1", toy)) is Verdict.NOT_EXECUTABLE
