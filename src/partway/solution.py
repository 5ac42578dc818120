"""A solution is a tuple of steps in canonical source: the paper's y = (u_1, ..., u_t).

Identity, prefixes, duplicates and lengths are tuple operations.
"""

from __future__ import annotations

from dataclasses import dataclass

from partway.errors import SolutionError
from straightline import parse, renamed

ANSWER_VARIABLE = "answer"


@dataclass(frozen=True, slots=True)
class Solution:
    """Steps, each one top-level statement as the unparsed AST spells it.

    >>> Solution.parse("n0=10  # ml\\nanswer = (n0) * 2; print(answer)").steps
    ('n0 = 10', 'answer = n0 * 2')
    """

    steps: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, answer_variable: str = ANSWER_VARIABLE) -> Solution:
        """The solution in `text`, cut after the first step that assigns the answer variable."""
        parsed = parse(text, answer_variable)
        if parsed.error is not None:
            raise SolutionError(
                f"line {parsed.line}, column {parsed.column}: {parsed.error}; expected Python statements",
                parsed.line,
                parsed.column,
            )
        return cls(parsed.steps)

    @property
    def text(self) -> str:
        """The steps joined by newlines, as the model reads and writes them."""
        return "\n".join(self.steps)

    def prefix(self, length: int) -> Solution:
        """The first `length` steps: y_<=i."""
        return Solution(self.steps[:length])

    def startswith(self, prefix: Solution) -> bool:
        """Whether `prefix` is a beginning of this solution, compared step by step."""
        return self.steps[: len(prefix.steps)] == prefix.steps

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        return self.text


EMPTY = Solution(())


def alpha_form(
    solution: Solution, answer_variable: str = ANSWER_VARIABLE, *, numbers: bool = False
) -> Solution:
    """The solution with its variables renamed v0, v1, ... in order of appearance; the answer keeps its name.

    With `numbers`, equal ones are also spelled alike.

    >>> alpha_form(Solution.parse("b = 2.0\\nanswer = b * 3")).steps
    ('v0 = 2.0', 'answer = v0 * 3')
    """
    return Solution(renamed(solution.steps, answer_variable, numbers=numbers))
