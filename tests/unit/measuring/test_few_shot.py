"""The paper's prompt for models that were not fine-tuned."""

import pytest

from partway.errors import ProblemError
from partway.language import PythonLanguage
from partway.language.language import Instruction
from partway.measuring.few_shot import few_shot_prompt
from partway.models.text import PlainPrompt
from partway.problem import Problem
from partway.solution import Solution


def examples(count):
    return [
        Problem(f"e{n}", f"How many is\n  {n} and 1?", n + 1, f"n0 = {n}\nanswer = n0 + 1")
        for n in range(count)
    ]


def test_the_prompt_has_the_task_line_four_examples_and_the_question():
    assert few_shot_prompt(examples(6)).text(" What is\u2028the sum? ").split("\n") == [
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
    assert PlainPrompt().text("How many?") == "# How many?\n"


def test_too_few_examples_and_examples_without_solutions_are_refused():
    with pytest.raises(ProblemError, match="4 examples are wanted and 3 are given"):
        few_shot_prompt(examples(3))
    with pytest.raises(ProblemError, match="example weak has no solution"):
        few_shot_prompt([*examples(3), Problem("weak", "?", 1)])


class Sql(PythonLanguage):
    instruction = Instruction("SQL", "selects the answer", comment="-- ", fence="sql")


def test_examples_are_shown_in_the_comments_of_the_language():
    example = Problem("p", "How many?", 1, Solution(("SELECT 1;",)))
    text = few_shot_prompt([example], shots=1, language=Sql()).text("And now?")
    assert text.startswith("-- Generate SQL code to solve the following problems:")
    assert text.endswith("-- How many?\nSELECT 1;\n\n-- And now?\n")
