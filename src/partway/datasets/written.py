"""Solutions as data sets write them: fenced code, prose with the answer in it, equations, functions.

Code is taken out of its fence. Prose is no program: it has an answer (`#### 72`, a box) and no reference.
What is made of an equation or a function is only a try: it is dropped if it does not give the answer.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from partway.datasets.spellings import boxed, plain_answer
from partway.execution.forms import read_written
from partway.parsing import UNPARSABLE, parse_tree

ANSWER = "answer"  # what made references assign
MARK = "####"  # GSM8K writes its answer behind it
_FENCE = re.compile(
    r"^[ \t]*```[ \t]*(?P<language>\w*)[^\n]*\n(?P<code>.*?)^[ \t]*```", re.MULTILINE | re.DOTALL
)
_LITERAL = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", re.ASCII)


@dataclass(frozen=True, slots=True)
class Completion:
    """What a text that answers a question holds; None where it says nothing."""

    solution: Any = None
    answer: Any = None
    gsm8k: str | None = None  # the text, if it is in GSM8K's markup


def read_completion(value: Any) -> Completion:
    r"""The program, or the answer alone, in what somebody wrote to a question.

    >>> read_completion("So:\n```python\nanswer = 2\n```\n").solution
    'answer = 2\n'
    >>> read_completion(r"Two and two are $\boxed{4}$.")
    Completion(solution=None, answer=4, gsm8k=None)
    """
    if not isinstance(value, str):
        return Completion(value)
    if (code := fenced(value)) is not None:
        return Completion(code)
    answer = boxed(value)
    if (MARK not in value and answer is None) or _is_program(value):
        return Completion(value)
    if answer is None:
        return Completion(None, plain_answer(value.rpartition(MARK)[2]), value)
    return Completion(None, plain_answer(answer))


def fenced(text: str) -> str | None:
    """The code in the last Python fence of a text, or in its last fence of no language; None without one."""
    fences = [(match["language"].lower(), match["code"]) for match in _FENCE.finditer(text)]
    for languages in (("python", "py", "python3"), ("",)):
        codes = [code for language, code in fences if language in languages]
        if codes:
            return codes[-1]
    return None


def _is_program(text: str) -> bool:
    """Whether text that may be prose is a program after all: it parses and assigns something."""
    try:
        statements = parse_tree(text).body
    except UNPARSABLE:
        return False
    return any(isinstance(statement, (ast.Assign, ast.FunctionDef)) for statement in statements)


def from_equation(equation: Any) -> str | None:
    """A program that names the numbers of an equation and computes it; None if there are not two sides.

    >>> print(from_equation("( 8.0 - 3.0 ) * 2 = 10"))
    n0 = 8
    n1 = 3
    n2 = 2
    answer = (n0 - n1) * n2
    """
    if not isinstance(equation, str) or equation.count("=") > 1 or len(equation) > 300:
        return None
    numbers: list[str] = []

    def named(match: re.Match[str]) -> str:
        numbers.append(re.sub(r"\.0+$", "", match[0]))
        return f"n{len(numbers) - 1}"

    expression = _LITERAL.sub(named, equation.partition("=")[0])
    try:
        body = ast.unparse(ast.parse(expression.strip(), mode="eval"))
    except UNPARSABLE:
        return None
    return "\n".join([*(f"n{i} = {number}" for i, number in enumerate(numbers)), f"{ANSWER} = {body}"])


def from_function(code: Any) -> str | None:
    """The steps inside `def solution(): ... return x`; other programs as they are, None if it is none.

    >>> print(from_function("def solution():\\n    'How many?'\\n    n0 = 5\\n    return n0 * 2"))
    n0 = 5
    answer = n0 * 2
    """
    if not isinstance(code, str):
        return None
    try:
        tree = parse_tree(code)
    except UNPARSABLE:
        return None
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and ast.get_docstring(function) and len(function.body) > 1:
            del function.body[0]
    written = read_written(ast.unparse(tree), ANSWER)
    return code if written is None else written.source
