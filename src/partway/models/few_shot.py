"""Prompts as text, for models that were not fine-tuned: the paper's few-shot prompt for Codex."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from partway.errors import ProblemError
from partway.parsing import MAX_CHARACTERS, parse
from partway.problem import Problem
from partway.solution import ANSWER_VARIABLE

TASK = "# Generate Python code to solve the following math word problems:"
SHOTS = 4


@dataclass(frozen=True)
class FewShotPrompt:
    """The task line, then examples: each the question as a one-line comment and its reference solution.

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
        shown = (f"{_comment(example.question)}{example.reference}\n\n" for example in examples[:shots])
        return cls(f"{TASK}\n\n{''.join(shown)}")

    def text(self, question: str) -> str:
        """What the model is to continue with a solution of `question`."""
        return self.beginning + _comment(question)


def _comment(question: str) -> str:
    return f"# {' '.join(question.split())}\n"


def cut_completion(text: str, finished: bool, answer_variable: str = ANSWER_VARIABLE) -> tuple[str, bool]:
    """The solution at the beginning of what a model wrote, and whether it is finished.

    It ends where the answer step is closed, or before a blank line or a comment, which begin another problem.

    >>> cut_completion("answer = 2\\n\\n# Another question?\\nanswer = 3", finished=False)
    ('answer = 2\\n', True)
    >>> cut_completion("n0 = 1\\nanswer = max(n0,\\n", finished=False)
    ('n0 = 1\\nanswer = max(n0,\\n', False)
    """
    lines = text.lstrip("\n").split("\n")
    closed = len(lines) if finished else len(lines) - 1
    end = next((n for n in range(1, closed) if _begins_another(lines[n])), None)
    length = _answer_end(lines[: closed if end is None else end], answer_variable) or end
    if length is None:
        return "\n".join(lines), finished
    return "".join(f"{line}\n" for line in lines[:length]), True


def _begins_another(line: str) -> bool:
    return not line or line.isspace() or line.startswith("#")


def _answer_end(lines: Sequence[str], answer_variable: str) -> int | None:
    """How many lines it takes until the answer is assigned, None if it never is.

    Once it is assigned, more lines do not change that. So the number is found by doubling, then by halving:
    all the parsing together costs a few times that of the solution itself, not its square.
    """
    first = next((n for n, line in enumerate(lines, 1) if line.startswith(answer_variable)), None)
    if first is None:
        return None
    readable = bisect_right(list(accumulate(len(line) + 1 for line in lines)), MAX_CHARACTERS)

    def is_assigned(length: int) -> bool:
        return _assigns_answer("".join(f"{line}\n" for line in lines[:length]), answer_variable)

    if first > readable or not (is_assigned(first) or is_assigned(readable)):
        return None
    without, length = first - 1, first
    while not is_assigned(length):
        without, length = length, min(readable, 2 * length)
    return bisect_left(range(length), True, without + 1, key=is_assigned)


def _assigns_answer(solution: str, answer_variable: str) -> bool:
    parsed = parse(solution, answer_variable)
    return parsed.error is None and any(step.assigns(answer_variable) for step in parsed.statements[-1:])
