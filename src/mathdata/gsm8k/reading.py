"""Tokens to expressions: finds the arithmetic among the words of a written solution and parses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from mathdata.gsm8k.expressions import Expression, Letter, Negative, Number, Operation
from mathdata.gsm8k.tokens import Token

MAX_WORDS_BEFORE_OPERAND = 3
MAX_TOKENS = 150  # longer expressions nest deeper than Python parses
OPERANDS = ("number", "letter", "close")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A run of tokens that may be an expression, and what stands around it in its segment."""

    tokens: tuple[Token, ...]
    words_before: int
    stops_before: int
    complete: bool  # it does not end in an operator
    restarts: tuple[int, ...] = ()  # where words stand inside it, so that a new phrase may begin there

    @property
    def has_operator(self) -> bool:
        return any(token.kind == "operator" for token in self.tokens)


def phrases(segment: Sequence[Token]) -> list[Phrase]:
    """The arithmetic in a segment: runs of operands and operators, unit words left out."""
    scanner = _Scanner()
    for token, following in zip_longest(segment, segment[1:]):
        scanner.take(token, following)
    scanner.close()
    return scanner.found


class _Scanner:
    """Walks once over a segment; a number after words, without an operator between, begins a new phrase."""

    def __init__(self) -> None:
        self.found: list[Phrase] = []
        self.items: list[Token] = []
        self.restarts: list[int] = []
        # Brackets open in this phrase, words since its last token, words before it, stops in the segment.
        self.opened = self.words = self.words_before = self.stops = 0

    @property
    def after_operand(self) -> bool:
        return bool(self.items) and self.items[-1].kind in OPERANDS

    def take(self, token: Token, following: Token | None) -> None:
        match token.kind:
            case "number" | "letter" | "open":
                self.take_operand(token)
            case "close":
                self.take_close(token)
            case "operator":
                self.take_operator(token, following)
            case "word":
                self.words += 1
                if self.items and not self.after_operand and self.words > MAX_WORDS_BEFORE_OPERAND:
                    self.close()
            case "stop":
                self.close()
                self.stops += 1
                self.words = 0

    def take_operand(self, token: Token) -> None:
        if self.after_operand:
            if self.words or (token.kind == "number" and self.items[-1].kind == "number"):
                self.close()  # `3 apples 4`: no operator, so a new phrase
            else:  # `2x`, `3(4 + 5)`: multiplied
                self.items.append(Token("operator", "*", token.start, token.start))
        elif self.items and self.words:
            self.restarts.append(len(self.items))
        self.append(token)
        self.opened += token.kind == "open"

    def take_close(self, token: Token) -> None:
        if self.opened and self.after_operand:
            self.append(token)
            self.opened -= 1
        else:
            self.close()

    def take_operator(self, token: Token, following: Token | None) -> None:
        if self.after_operand and token.text == "/" and following is not None and following.kind == "word":
            self.words += 1  # dollars/hour
        elif self.after_operand or token.text in "+-":
            if self.after_operand and self.words and token.text in "+-":
                self.restarts.append(len(self.items))  # 9 because -18/-2
            self.append(token)
        else:
            self.close()
            self.words = 0

    def append(self, token: Token) -> None:
        if not self.items:
            self.words_before = self.words
        self.words = 0
        self.items.append(token)

    def close(self) -> None:
        complete = self.after_operand
        # `3 + 4 +` was heard as far as `3 + 4`.
        while self.items and not self.after_operand:
            self.items.pop()
        for items in _balanced(self.items):
            restarts = tuple(self.restarts) if len(items) == len(self.items) else ()
            self.found.append(Phrase(tuple(items), self.words_before, self.stops, complete, restarts))
        self.items, self.restarts, self.opened = [], [], 0


def _balanced(items: list[Token]) -> Iterator[list[Token]]:
    """The items cut at brackets that never close."""
    opened: list[int] = []
    for index, token in enumerate(items):
        if token.kind == "open":
            opened.append(index)
        elif token.kind == "close":
            opened.pop()  # never empty: the scanner takes no bracket that closes nothing
    start = 0
    for index in [*opened, len(items)]:
        part = items[start:index]
        while part and part[-1].kind == "operator":
            part.pop()
        if part:
            yield part
        start = index + 1


def parse(tokens: Sequence[Token]) -> Expression | None:
    """The expression the tokens spell, None if they do not spell exactly one."""
    if len(tokens) > MAX_TOKENS:
        return None
    parser = _Parser(tokens)
    expression = parser.sum()
    return expression if parser.position == len(tokens) else None


class _Parser:
    """Precedence climbing over operands, operators and brackets."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.position = 0

    def operator(self, *wanted: str) -> str | None:
        if self.position < len(self.tokens):
            token = self.tokens[self.position]
            if token.kind == "operator" and token.text in wanted:
                self.position += 1
                return token.text
        return None

    def sum(self) -> Expression | None:
        return self.chain(("+", "-"), self.product)

    def product(self) -> Expression | None:
        return self.chain(("*", "/", "//"), self.signed)

    def chain(
        self, operators: tuple[str, ...], operand: Callable[[], Expression | None]
    ) -> Expression | None:
        left = operand()
        while left is not None and (operator := self.operator(*operators)):
            right = operand()
            left = None if right is None else Operation(operator, left, right)
        return left

    def signed(self) -> Expression | None:
        sign = self.operator("+", "-")
        if sign is None:
            return self.power()
        operand = self.signed()
        return Negative(operand) if sign == "-" and operand is not None else operand

    def power(self) -> Expression | None:
        base = self.atom()
        if base is not None and self.operator("**"):
            exponent = self.signed()  # binds to the right, and may have a sign: 2 ** -1
            return None if exponent is None else Operation("**", base, exponent)
        return base

    def atom(self) -> Expression | None:
        if self.position == len(self.tokens):
            return None
        token = self.tokens[self.position]
        self.position += 1
        match token.kind:
            case "number":
                return Number(token.value, token.percent)
            case "letter":
                return Letter(token.text)
            case "open":
                inner = self.sum()
                closed = self.position < len(self.tokens) and self.tokens[self.position].kind == "close"
                self.position += 1
                return inner if closed else None
        return None


def with_mixed_numbers(line: Sequence[Token]) -> list[Token]:
    """`1 1/4` as (1 + 1/4)."""
    joined: list[Token] = []
    index = 0
    while index < len(line):
        if line[index].kind == "number" and _is_mixed(line[index : index + 4]):
            whole, *fraction = line[index : index + 4]
            plus = Token("operator", "+", whole.end, whole.end)
            joined += _bracketed([whole, plus, *fraction])
            index += 4
        else:
            joined.append(line[index])
            index += 1
    return joined


def with_tight_fractions(tokens: Sequence[Token]) -> list[Token]:
    """`6 / 1/30` as 6 / (1/30): a fraction written without spaces binds first."""
    joined: list[Token] = []
    index = 0
    while index < len(tokens):
        window = tokens[index : index + 3]
        if _is_fraction(window) and window[0].end == window[1].start and window[1].end == window[2].start:
            joined += _bracketed(window)
            index += 3
        else:
            joined.append(tokens[index])
            index += 1
    return joined


def _is_mixed(window: Sequence[Token]) -> bool:
    if len(window) < 4 or not _is_fraction(window[1:]):
        return False
    whole, top, _, bottom = window
    # `2 3/4` is a mixed number; `2.5 3/4` and `2 5/4` are two numbers side by side.
    return not (whole.decimals or top.decimals or whole.percent) and 0 < top.value < bottom.value


def _is_fraction(window: Sequence[Token]) -> bool:
    return [token.kind for token in window] == ["number", "operator", "number"] and window[1].text == "/"


def _bracketed(tokens: Sequence[Token]) -> list[Token]:
    start, end = tokens[0].start, tokens[-1].end
    return [Token("open", "(", start, start), *tokens, Token("close", ")", end, end)]
