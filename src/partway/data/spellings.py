"""Answers and solutions as data sets spell them.

Answers are `1,000`, `$5`, `75%`, `3/4`, and the LaTeX of MATH. A percentage is the number in front of its
sign, as the data sets that write one mean it: 75% is 75.

Solutions are fenced code, prose with the answer in it, equations and functions. Code is taken out of its
fence. Prose is not a program: it has an answer (`#### 72`, a box) and no reference. A program made of an
equation or a function is dropped if it does not give the answer.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from straightline.parsing import UNPARSABLE, parse_tree

ANSWER = "answer"  # what made references assign
MARK = "####"  # GSM8K writes its answer after it
_FENCE = re.compile(
    r"^[ \t]*```[ \t]*(?P<language>\w*)[^\n]*\n(?P<code>.*?)^[ \t]*```", re.MULTILINE | re.DOTALL
)
_LITERAL = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", re.ASCII)
MOST_DIGITS = 300  # longer runs of digits stay text
_NUMBER = re.compile(
    r"(?P<sign>[-+]?)\$?(?=\.?\d)(?P<whole>\d{1,3}(?:,\d{3})+|\d*)"
    r"(?P<rest>(?:\.\d*)?(?:e[-+]?\d{1,3})?)(?:/(?P<under>\d+))?%?",
    re.ASCII | re.IGNORECASE,
)
_MATH = re.compile(r"\$(.*[^$\\])\$|\\\((.*)\\\)|\\boxed\s*\{(.*)\}", re.DOTALL)
_FRACTION = re.compile(
    r"(?P<whole>(?<![\d.])\d*)\\[dt]?frac\s*(?:\{(?P<over>-?\d+)\}\s*\{(?P<under>\d+)\}|(?P<short>\d\d))",
    re.ASCII,
)


def plain_answer(text: str) -> int | float | str:
    r"""The number that `text` writes, in the spellings data sets use; other text stays text.

    >>> [plain_answer(text) for text in ("72", "1,234", "$5", "3/4", "-0.50", "6/3", "5 apples", "1,23")]
    [72, 1234, 5, 0.75, -0.5, 2, '5 apples', '1,23']
    >>> [plain_answer(text) for text in ("75%", r"\frac{3}{4}", r"$\boxed{7}$", r"1\frac12", r"10{,}000")]
    [75, 0.75, 7, 1.5, 10000]
    """
    text = text.strip()
    match = _NUMBER.fullmatch(_without_latex(text)) if len(text) <= MOST_DIGITS else None
    if match is None or (match["under"] and int(match["under"]) == 0):
        return text
    literal = match["sign"] + match["whole"].replace(",", "") + match["rest"]
    number = float(literal) if match["rest"] else int(literal)
    if match["under"]:
        number = number / int(match["under"])
        return int(number) if number.is_integer() else number
    return number


def boxed(text: str) -> str | None:
    r"""What the last `\boxed{...}` of a text holds, None if there is none.

    >>> boxed(r"Half of it is \boxed{\frac{1}{2}}."), boxed("no box")
    ('\\frac{1}{2}', None)
    """
    _, box, inside = text.rpartition("\\boxed{")
    depth = 1
    for position, character in enumerate(inside if box else ""):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return inside[:position]
    return None


def _without_latex(text: str) -> str:
    while match := _MATH.fullmatch(text):  # $...$ around it, or a box
        text = next(inside for inside in match.groups() if inside is not None).strip()
    text = _FRACTION.sub(_divided, text.replace("{,}", ","))
    text = re.sub(r"\\(?=[$%])|\\[!,;]|\\(?:left|right)\b", "", text)
    return re.sub(r"\s*([-+$/%])\s*", r"\1", text)


def _divided(match: re.Match[str]) -> str:
    short = match["short"] or ""  # \\frac34
    over, under = int(match["over"] or short[:1]), int(match["under"] or short[1:])
    return f"{int(match['whole'] or 0) * under + over}/{under}"  # with a whole number: a mixed one


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
    if not value.strip():
        return Completion(None)
    if (code := fenced(value)) is not None:
        return Completion(code)
    answer = boxed(value)
    # A program may hold a mark or a box, too, in a comment for instance.
    if (MARK not in value and answer is None) or _is_program(value):
        return Completion(value)
    if answer is None:
        return Completion(None, plain_answer(value.rpartition(MARK)[2]), value)
    return Completion(None, plain_answer(answer))


def fenced(text: str) -> str | None:
    """The code in the last Python fence of a text, or in its last fence of no language; None without one."""
    if "```" not in text:
        return None
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
        # `8.0` is 8 in the story.
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
    match tree.body:
        case [*imports, ast.FunctionDef(body=[*steps, ast.Return(value=ast.expr() as value)]) as function]:
            if ast.get_docstring(function) and steps:  # the question stands there: no step of a solution
                del steps[0]
            nodes = (node for step in steps for node in ast.walk(step))
            if not any(isinstance(node, ast.Return) for node in nodes):
                return "\n".join([*map(ast.unparse, [*imports, *steps]), f"{ANSWER} = {ast.unparse(value)}"])
    return code
