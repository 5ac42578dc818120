"""Answers as data sets spell them: `1,000`, `$5`, `75%`, `3/4`, and the LaTeX of MATH.

A percentage is the number in front of its sign, as the data sets that write one mean it: 75% is 75.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from partway.problem import Problem

MOST_DIGITS = 300  # longer runs of digits stay text
MOST_NAMED = 3  # answers in a message
_BEGINS_WITH_NUMBER = re.compile(r"\s*[-+$]{0,2}\.?\d", re.ASCII)
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


def numbers_left_text(problems: Sequence[Problem]) -> list[str]:
    """Answers that begin with a number and are text all the same, so that no number a program gives is right.

    With a reference that gives this very text, it is meant.
    """
    texts = (p.answer for p in problems if isinstance(p.answer, str) and p.reference is None)
    return [text for text in texts if _BEGINS_WITH_NUMBER.match(text)]


def without_number(problems: Sequence[Problem]) -> str | None:
    """What to tell whoever has such answers, None if there are none."""
    if not (texts := numbers_left_text(problems)):
        return None
    distinct = list(dict.fromkeys(texts))
    named = ", ".join(f"{text!r:.40}" for text in distinct[:MOST_NAMED])
    more = ", ..." if len(distinct) > MOST_NAMED else ""
    return (
        f"{len(texts):,} of {len(problems):,} answers begin with a number but are text, to which no number "
        f"is equal: {named}{more}; if the number is the answer, write it alone"
    )


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
