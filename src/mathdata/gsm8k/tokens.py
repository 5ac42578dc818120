"""Text to tokens: what in a line of a written solution is a number, an operator, a letter or just a word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

Kind = Literal["number", "letter", "operator", "open", "close", "equals", "word", "stop", "mark"]


class Token(NamedTuple):
    """A piece of text; numbers carry their value, decimals as written, and whether a percent sign follows."""

    kind: Kind
    text: str
    start: int
    end: int
    value: Fraction = Fraction(0)
    decimals: int = 0
    percent: bool = False


MARK = "\ue000"  # stands where an annotation was
MAX_DIGITS = 40  # longer ones are not numbers that a problem is about

_CHARACTERS = str.maketrans({
    **dict.fromkeys("×∗·•", "*"), **dict.fromkeys("–—−", "-"), **dict.fromkeys("[{", "("),
    **dict.fromkeys("]}", ")"), **dict.fromkeys("’‘`", "'"), **dict.fromkeys("£€", "$"),
    "÷": "/", "½": " 1/2", "¼": " 1/4", "¾": " 3/4",
})  # fmt: skip
_WORDS = {"divided by": "/", "multiplied by": "*", "times": "*", "plus": "+", "minus": "-"}
_WORD_OPERATOR = re.compile(r"\b(divided by|multiplied by|times|plus|minus|equals|(?:is )?equals? to)\b")
_SPELLINGS = [
    (re.compile(pattern), spelling)
    for pattern, spelling in [
        (r"(?:(?<=%)|(?<=\d/\d)) of (?:the )?(?=[\d$(])", " * "),  # 10% of 150
        (r"(?<=\d)-(?=[A-Za-z]{2})|(?<=[A-Za-z]{2})-(?=[A-Za-z])", " "),  # 30-day, one-third
        (r"(?<=\d) and (?=\d+/\d)", " "),  # 1 and 1/4
        (r"\((?=[^()\d]*[A-Za-z]{2})[^()\d]*\)", " "),  # (how many Alyssa ate)
        (r"(?<![\d.,])(\d{1,3}) (\d{3})(?: (\d{3}))?(?![\d.,]*\d|-| [a-z]+s? of)", r"\1\2\3"),  # 80 000
        (r"(?<=\d) : (?=[\d$])", " / "),
        (r"\$", ""),
        (r"(?<=[\d)%])\s*[xX]\s*(?=\.?\d)|(?<=[a-z]) [xX] (?=\.?\d)", " * "),
    ]
]
_TOKEN = re.compile(
    rf"""(?P<number>(?:\d+(?:,\d+)*(?:\.\d+)?|\.\d+)(?P<percent>(?:\.\.\.)?\s?%|\s+percent\b)?)
    |(?P<operator>\*\*|//|[-+*/^])
    |(?P<open>\()|(?P<close>\))|(?P<equals>=+)|(?P<mark>{MARK})
    |(?P<letter>[A-Za-z](?![A-Za-z']))
    |(?P<word>[A-Za-z][A-Za-z']*|[%"'#@&°])
    |(?P<stop>\S)""",
    re.VERBOSE,
)
_LETTER_IN_EQUATION = re.compile(
    r"(?:(?<=[-+*/=(\d])|(?<=[-+*/=] ))([A-Za-z])(?![A-Za-z'])|(?<![A-Za-z'])([A-Za-z])(?=\s*[-+*/=)])"
)
_LONE_LETTER = re.compile(
    r"(?<![A-Za-z'’])(?:[B-HJ-Zb-hj-z](?![A-Za-z'’])(?! ?[$.\d])|[AaIi] ?=)|= ?[AaIi]\b"
)
ARTICLES = frozenset("aAiI")  # words of their own, which a letter of an equation need not be


def plain_spelling(line: str) -> str:
    """The line with one spelling for each operator, so that tokens need to know only one."""
    line = line.translate(_CHARACTERS)
    line = _WORD_OPERATOR.sub(lambda match: _WORDS.get(match[1], "="), line)
    for pattern, spelling in _SPELLINGS:
        line = pattern.sub(spelling, line)
    return line


def tokens(line: str, unknowns: frozenset[str] = frozenset()) -> Iterator[Token]:
    """The tokens of a line in plain spelling; only `unknowns` are letters, another x may mean times."""
    for match in _TOKEN.finditer(line):
        kind, text = match.lastgroup, match.group()
        start, end = match.span()
        if kind in ("number", "percent") and len(text) <= MAX_DIGITS:
            yield _number(text, start, end, match["percent"] is not None)
        elif kind == "letter":
            yield _letter(text, start, end, line, unknowns)
        elif kind == "operator":
            yield Token("operator", "**" if text == "^" else text, start, end)
        else:
            yield Token(_KINDS.get(kind or "", "stop"), text, start, end)


_KINDS: dict[str, Kind] = {
    "open": "open", "close": "close", "equals": "equals", "mark": "mark", "word": "word",
}  # fmt: skip


def _number(text: str, start: int, end: int, percent: bool) -> Token:
    # After the digits stand at most a percent sign, the letters of `percent`, or dots.
    digits = text.rstrip("%percnt .").replace(",", "")
    return Token("number", text, start, end, _fraction(digits), len(digits.partition(".")[2]), percent)


_fraction = lru_cache(maxsize=10_000)(Fraction)  # the same few numbers recur


def _letter(text: str, start: int, end: int, line: str, unknowns: frozenset[str]) -> Token:
    name = text if text in ARTICLES else text.lower()  # X and x are one unknown, `A` and `a` may differ
    if name in unknowns:
        return Token("letter", name, start, end)
    # `3 x (4 + 5)`; before a digit, `plain_spelling` has made it a sign already.
    times = name == "x" and re.match(r"\s*\(", line[end:])
    return Token("operator", "*", start, end) if times else Token("word", text, start, end)


def unknowns_in(text: str) -> list[str]:
    """Letters that stand for an unknown: single, and beside a digit, an operator or an equals sign."""
    if not _LONE_LETTER.search(text):  # most solutions have none, and this is quick to see
        return []
    text = plain_spelling(text)
    names: list[str] = []
    for match in _LETTER_IN_EQUATION.finditer(text):
        letter = match[1] or match[2]
        name = letter if letter in ARTICLES else letter.lower()
        if name not in names and (name not in ARTICLES or re.search(rf"= ?{name}\b(?!')|\b{name} ?=", text)):
            names.append(name)
    return names
