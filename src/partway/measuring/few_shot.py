"""The paper's prompt for Codex, and for other models that were not fine-tuned: a task line and examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from partway.errors import ProblemError
from partway.language import PYTHON, Language
from partway.models.text import PlainPrompt, plain_prompt
from partway.problem import Problem

SHOTS = 4


def few_shot_prompt(
    examples: Sequence[Problem], *, shots: int = SHOTS, language: Language = PYTHON
) -> PlainPrompt:
    """The question as a comment, after a task line and the first `shots` examples.

    >>> oil = Problem("oil", "10 ml for each of 2 wheels?", 20, "n0 = 10\\nanswer = n0 * 2")
    >>> print(few_shot_prompt([oil], shots=1).text("And  for\\n4?"), end="")
    # Generate Python code to solve the following math word problems:
    <BLANKLINE>
    # 10 ml for each of 2 wheels?
    n0 = 10
    answer = n0 * 2
    <BLANKLINE>
    # And for 4?
    """
    if not 1 <= shots <= len(examples):
        raise ProblemError(
            f"{shots} examples are wanted and {len(examples)} are given; give more or ask for fewer"
        )
    for example in examples[:shots]:
        if example.reference is None:
            raise ProblemError(f"example {example.id} has no solution, expected one to show to the model")
    asked, plain = language.instruction, plain_prompt(language)
    kind = "math word problems" if asked.name == PYTHON.instruction.name else "problems"  # the paper's words
    task = f"{asked.comment}Generate {asked.name} code to solve the following {kind}:"
    shown = (
        f"{plain.text(language.question(example))}{example.reference}\n\n" for example in examples[:shots]
    )
    return replace(plain, beginning=f"{task}\n\n{''.join(shown)}")
