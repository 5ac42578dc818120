"""Prompts as text, for models that were not fine-tuned: the paper's few-shot prompt for Codex."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from partway.errors import ProblemError
from partway.execution import PYTHON, Programs
from partway.models.prompts import PLAIN
from partway.problem import Problem

TASK = "# Generate Python code to solve the following math word problems:"
SHOTS = 4


@dataclass(frozen=True)
class FewShotPrompt:
    """A `Prompt`: the task line, then examples, each the question as a comment and its reference solution.

    Without examples and task this is the prompt of a fine-tuned model: the question's comment alone.

    >>> oil = Problem("oil", "10 ml for each of 2 wheels?", 20, "n0 = 10\\nanswer = n0 * 2")
    >>> print(FewShotPrompt.of([oil], shots=1).text("And for 4?"), end="")
    # Generate Python code to solve the following math word problems:
    <BLANKLINE>
    # 10 ml for each of 2 wheels?
    n0 = 10
    answer = n0 * 2
    <BLANKLINE>
    # And for 4?
    """

    beginning: str = ""
    closing: str = ""
    is_markup: bool = False

    @classmethod
    def of(cls, examples: Sequence[Problem], *, shots: int = SHOTS) -> FewShotPrompt:
        """The prompt with the first `shots` examples."""
        if not 1 <= shots <= len(examples):
            raise ProblemError(
                f"{shots} examples wanted and {len(examples)} given, expected at least one and enough"
            )
        for example in examples[:shots]:
            if example.reference is None:
                raise ProblemError(f"example {example.id} has no solution, expected one to show to the model")
        shown = (f"{PLAIN.text(example.question)}{example.reference}\n\n" for example in examples[:shots])
        return cls(f"{TASK}\n\n{''.join(shown)}")

    def text(self, question: str) -> str:
        """What the model is to continue with a solution of `question`."""
        return self.beginning + PLAIN.text(question)


def cut_completion(text: str, finished: bool, programs: Programs = PYTHON) -> tuple[str, bool]:
    """The solution at the beginning of what a model wrote, and whether it is finished.

    It ends where the language says, or before a blank line or a comment, which begin another problem.

    >>> cut_completion("answer = 2\\n\\n# Another question?\\nanswer = 3", finished=False)
    ('answer = 2\\n', True)
    >>> cut_completion("n0 = 1\\nanswer = max(n0,\\n", finished=False)
    ('n0 = 1\\nanswer = max(n0,\\n', False)
    """
    text = text.lstrip("\n")
    closed = f"{text}\n" if finished and text and not text.endswith("\n") else text
    another = _ANOTHER_PROBLEM(closed)
    ends = [end for end in (programs.end(closed), another and another.start()) if end is not None]
    return (closed[: min(ends)], True) if ends else (text, finished)


_ANOTHER_PROBLEM = re.compile(r"(?<=\n)(?:[^\S\n]*|#[^\n]*)\n").search
