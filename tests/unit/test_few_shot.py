"""The paper's prompt for models that were not fine-tuned, and where their solutions end."""

import pytest

from partway.errors import ProblemError
from partway.models.few_shot import FewShotPrompt, cut_completion
from partway.problem import Problem


def examples(count):
    return [
        Problem(f"e{n}", f"How many is\n  {n} and 1?", n + 1, f"n0 = {n}\nanswer = n0 + 1")
        for n in range(count)
    ]


def test_the_prompt_has_the_task_line_four_examples_and_the_question():
    assert FewShotPrompt.of(examples(6)).text(" What is\u2028the sum? ").split("\n") == [
        "# Generate Python code to solve the following math word problems:",
        "",
        *(
            line
            for n in range(4)
            for line in (f"# How many is {n} and 1?", f"n0 = {n}", "answer = n0 + 1", "")
        ),
        "# What is the sum?",
        "",
    ]


def test_without_examples_the_prompt_is_that_of_a_fine_tuned_model():
    assert FewShotPrompt().text("How many?") == "# How many?\n"


def test_too_few_examples_and_examples_without_solutions_are_refused():
    with pytest.raises(ProblemError, match="4 examples wanted and 3 given"):
        FewShotPrompt.of(examples(3))
    with pytest.raises(ProblemError, match="example weak has no solution"):
        FewShotPrompt.of([*examples(3), Problem("weak", "?", 1)])


@pytest.mark.parametrize(
    ("written", "finished", "expected"),
    [
        ("n0 = 1\nanswer = n0\nprint(answer)\n", True, ("n0 = 1\nanswer = n0\n", True)),
        ("n0 = 1\nanswer = n0\nprint(ans", False, ("n0 = 1\nanswer = n0\n", True)),
        ("n0 = 1\nanswer = n0", True, ("n0 = 1\nanswer = n0\n", True)),
        ("n0 = 1\nanswer = n0", False, ("n0 = 1\nanswer = n0", False)),
        ("answer = max(\n1,\n2)\nx = 1\n", False, ("answer = max(\n1,\n2)\n", True)),
        ("\n\nn0 = 1\n\nn1 = 2\n", False, ("n0 = 1\n", True)),
        ("n0 = 1\n# Next question?\nanswer = 5\n", False, ("n0 = 1\n", True)),
        ("# first the oil\nanswer = 5\n", False, ("# first the oil\nanswer = 5\n", True)),
        ("answers = 3\nanswer == 3\nn0 = 1\n", True, ("answers = 3\nanswer == 3\nn0 = 1\n", True)),
        ("def f(:\nanswer = 2\n", True, ("def f(:\nanswer = 2\n", True)),
        ("n0 = 1\nn1", False, ("n0 = 1\nn1", False)),
        ("", True, ("", True)),
    ],
)
def test_a_solution_ends_at_its_answer_a_blank_line_or_a_comment(written, finished, expected):
    assert cut_completion(written, finished) == expected


def test_another_answer_variable_ends_a_solution():
    assert cut_completion("answer = 1\nresult = 2\nn0 = 3", False, "result") == (
        "answer = 1\nresult = 2\n",
        True,
    )
