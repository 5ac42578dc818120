import pytest

from partway import EMPTY, Problem, Solution
from partway.errors import SolutionError
from partway.solution import alpha_form


def test_comments_blank_lines_spacing_and_redundant_brackets_vanish():
    text = "# oil\n\nn0  =  10   # ml\n\nanswer=((n0)*2)\n"
    assert Solution.parse(text).steps == ("n0 = 10", "answer = n0 * 2")


def test_a_compound_statement_is_one_step():
    solution = Solution.parse("t = 0\nfor i in range(3):\n    t += i\nanswer = t")
    assert len(solution) == 3
    assert solution.steps[1] == "for i in range(3):\n    t += i"


def test_two_statements_on_a_line_are_two_steps():
    assert Solution.parse("x = 1; y = 2").steps == ("x = 1", "y = 2")


def test_a_statement_over_two_lines_is_one_step():
    assert Solution.parse("x = (1 +\n2)\ny = x").steps == ("x = 1 + 2", "y = x")


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("answer = 1\nx = 2", 1),
        ("answer, x = 1, 2\ny = 3", 1),
        ("answer += 1\ny = 3", 1),
        ("answer: int = 1\ny = 3", 1),
        ("answer: int\ny = 3", 2),
        ("answers = 1\ny = 3", 2),
        ("x[answer] = 1\ny = 3", 2),
        ("answer = 1\n((", 1),
        ("x = (1,\n2)\nanswer = 1\n((", 2),
    ],
)
def test_a_solution_ends_at_the_first_step_that_assigns_the_answer(text: str, steps: int):
    assert len(Solution.parse(text)) == steps


def test_the_answer_variable_can_have_another_name():
    assert Solution.parse("answer = 1\nresult = 2\nx = 3", "result").steps == ("answer = 1", "result = 2")


@pytest.mark.parametrize(
    ("text", "line", "column"), [("x = 1\ny = = 2", 2, 5), ("x = (1,\n2", 1, 5), ("x = 1\n  y = 2", 2, 2)]
)
def test_text_that_does_not_parse_says_where(text: str, line: int, column: int):
    with pytest.raises(SolutionError, match=f"line {line}, column {column}") as caught:
        Solution.parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    "text", ["x = 1\x00", "\ud800", "(" * 5000, "x = " + "-" * 90_000 + "1", "y" * 10**7]
)
def test_monstrous_text_is_refused_in_one_line(text: str):
    with pytest.raises(SolutionError) as caught:
        Solution.parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_other_newlines_are_newlines(newline: str):
    assert Solution.parse(f"x = 1{newline}y = 2").steps == ("x = 1", "y = 2")


def test_unicode_line_separators_are_not_newlines():
    with pytest.raises(SolutionError):
        Solution.parse("x = 1\u2028y = 2")


def test_prefixes_are_by_steps_never_by_characters():
    longer = Solution.parse("n0 = 10")
    assert not longer.startswith(Solution.parse("n0 = 1"))
    assert longer.startswith(EMPTY)
    assert Solution.parse("a = 1\nb = 2").prefix(1) == Solution.parse("a=1")


def test_text_round_trips():
    solution = Solution.parse("if True:\n    x = 1\nanswer = x")
    assert Solution.parse(solution.text) == solution


def test_alpha_form_ignores_names_but_not_the_answers():
    one, other = (
        Solution.parse("a = 1\nb = a + a\nanswer = b"),
        Solution.parse("q = 1\na = q + q\nanswer = a"),
    )
    assert alpha_form(one) == alpha_form(other)
    assert alpha_form(Solution.parse("a = 1\nb = 2")) != alpha_form(Solution.parse("a = 1\na = 2"))
    assert alpha_form(Solution.parse("answer = 1")) != alpha_form(Solution.parse("a = 1"))


def test_a_problem_takes_its_reference_as_text_or_solution():
    solution = Solution.parse("answer = 2")
    assert Problem("1", "?", 2, "answer=2") == Problem("1", "?", 2, solution)
    assert Problem("1", "?", 2).reference is None


def test_a_solution_too_deep_to_be_read_again_is_its_own_renamed_form():
    deep = Solution(("x = " + "f(" * 101 + "1 for y in z" + ")" * 101,))
    tower = Solution(("x = " + "-" * 5000 + "1",))
    generators = Solution.parse("x = " + "f(" * 60 + "1 for y in z" + " for y in z)" * 60)
    for solution in (deep, tower, generators):
        assert len(alpha_form(solution)) == 1
    assert alpha_form(tower) == tower
