"""Text to statements in canonical form: strict about what a step is, forgiving about how text ends.

Parsing is what tracing spends its time on, so lines of plain arithmetic (`t0 = n0 * (n1 + 2)`), which is
nearly all that models write here, are recognised directly. Whatever is not recognised is handed to `ast`,
never guessed; both ways spell a statement as `ast.unparse` does.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from keyword import iskeyword
from typing import TypeAlias

Expression: TypeAlias = "int | float | str | tuple[str, Expression] | tuple[str, Expression, Expression]"
"""Arithmetic: a number, a name, ("neg", operand) or (operator, left, right)."""

MAX_CHARACTERS = 100_000
MAX_CACHED_LINES = 200_000
MAX_ARITHMETIC = 300  # characters; longer lines are left to `ast`
MAX_RETRIED = 500_000  # characters read again in search of the longest beginning that parses


class Statement:
    """One step: its canonical text and either `target = expression` in plain arithmetic or its AST node."""

    __slots__ = ("expression", "node", "target", "text")

    def __init__(
        self, text: str, target: str = "", expression: Expression = 0, node: ast.stmt | None = None
    ) -> None:
        self.text = text
        self.target = target
        self.expression = expression
        self.node = node

    def assigns(self, variable: str) -> bool:
        """Whether this is a simple statement that binds `variable`."""
        if self.node is None:
            return self.target == variable
        return any(name.id == variable for name in _bound_names(self.node))


@dataclass(frozen=True, slots=True)
class Parsed:
    """The statements of the longest beginning of whole lines that parses, and what is wrong behind it."""

    statements: tuple[Statement, ...]
    error: str | None = None
    line: int = 0
    column: int = 0

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(statement.text for statement in self.statements)


def parse(text: str, answer_variable: str, cache: dict[str, Statement] | None = None) -> Parsed:
    """The statements of `text`, cut after the first one that assigns the answer variable."""
    if len(text) > MAX_CHARACTERS:
        return Parsed((), f"text of {len(text):,} characters, at most {MAX_CHARACTERS:,} are read", 1, 1)
    if cache is None:
        cache = _cache
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    statements: list[Statement] = []
    for number, line in enumerate(lines):
        statement = cache.get(line)
        if statement is None:
            if not line or line.isspace():
                continue
            statement = parse_line(line)
            if statement is None:
                return _parse_tail(lines, number, statements, answer_variable)
            _remember(cache, line, statement)
        statements.append(statement)
        if statement.target == answer_variable or (
            statement.node is not None and statement.assigns(answer_variable)
        ):
            break
    return Parsed(tuple(statements))


_cache: dict[str, Statement] = {}


def _remember(cache: dict[str, Statement], line: str, statement: Statement) -> None:
    if len(cache) >= MAX_CACHED_LINES:
        cache.clear()
    cache[line] = statement


def parse_line(line: str) -> Statement | None:
    """The simple statement that `line` is on its own, None if it is none or may need its neighbours."""
    match = _SHORT(line)
    if match is not None and (statement := _short_statement(line, *match.groups())) is not None:
        return statement
    if len(line) <= MAX_ARITHMETIC and _ARITHMETIC(line) and (statement := _arithmetic(line)) is not None:
        return statement
    if line[0].isspace() or len(line) > MAX_ARITHMETIC:
        return None
    try:
        body = _ast_statements(line)
    except _UNPARSABLE:
        return None
    return body[0] if len(body) == 1 and isinstance(body[0].node, _SIMPLE) else None


# Plain arithmetic. Only ASCII: a name may be spelled in several ways otherwise, and \d has many digits.

_NAME = r"[A-Za-z][A-Za-z0-9_]*"
_NUMBER = r"(?:[1-9][0-9]{0,17}|0)(?:\.[0-9]{1,17})?"
_ATOM = rf"(?:({_NUMBER})|({_NAME}))"
_SHORT = re.compile(rf"({_NAME}) = {_ATOM}(?: (\*\*|//|[-+*/%]) {_ATOM})?").fullmatch
_ARITHMETIC = re.compile(rf"{_NAME} *=[-+*/%(). A-Za-z0-9_]+").fullmatch
_TOKEN = re.compile(rf"{_NUMBER}(?![0-9.A-Za-z_])|{_NAME}|//|\*\*|[-+*/%()=]").findall

_SUM, _TERM, _UNARY, _ATOMIC = range(4)
_PRECEDENCE = {"+": _SUM, "-": _SUM, "*": _TERM, "/": _TERM, "//": _TERM, "%": _TERM}


class _NotArithmetic(Exception):
    """The line is something else: leave it to `ast`."""


def _short_statement(
    line: str,
    target: str,
    left_number: str | None,
    left_name: str | None,
    operator: str | None,
    right_number: str | None,
    right_name: str | None,
) -> Statement | None:
    """`name = atom` and `name = atom op atom`, the bulk of all lines."""
    if iskeyword(target):
        return None
    left: Expression
    text = line
    if left_name is not None:
        if iskeyword(left_name):
            return None
        left = left_name
    else:
        assert left_number is not None
        left, spelled = _number(left_number)
        if spelled != left_number:
            text = text.replace(left_number, spelled, 1) if operator is None else ""
    if operator is None:
        return Statement(text, target, left)
    right: Expression
    if right_name is not None:
        if iskeyword(right_name):
            return None
        right = right_name
    else:
        assert right_number is not None
        right, spelled = _number(right_number)
        if spelled != right_number:
            text = ""
    if not text:
        return None  # a number Python spells differently; rare enough for the general way
    return Statement(text, target, (operator, left, right))


def _number(text: str) -> tuple[int | float, str]:
    """The number and how Python spells it."""
    if "." not in text:
        return int(text), text
    value = float(text)
    return value, repr(value)


def _arithmetic(line: str) -> Statement | None:
    """A line of arithmetic with any number of operators and brackets."""
    tokens: list[str] = _TOKEN(line)
    if len(tokens) < 3 or tokens[1] != "=" or "**" in tokens or tokens.count("=") > 1:
        return None
    if sum(map(len, tokens)) != len(line) - line.count(" "):
        return None
    tokens.reverse()
    target = tokens.pop()
    tokens.pop()
    try:
        expression, text, _ = _sum(tokens)
    except _NotArithmetic:
        return None
    if tokens or iskeyword(target) or not target[0].isalpha():
        return None
    return Statement(f"{target} = {text}", target, expression)


_Piece: TypeAlias = tuple[Expression, str, int]  # an expression, its spelling, how tightly it binds


def _sum(tokens: list[str]) -> _Piece:
    """A left-associative chain of operators; `tokens` is consumed from its end."""
    return _chain(tokens, ("+", "-"), _SUM)


def _chain(tokens: list[str], operators: tuple[str, ...], precedence: int) -> _Piece:
    operand = _term if precedence == _SUM else _unary
    left = operand(tokens)
    while tokens and tokens[-1] in operators:
        operator = tokens.pop()
        right = operand(tokens)
        spelled = f"{_bracketed(left, precedence)} {operator} {_bracketed(right, precedence + 1)}"
        left = ((operator, left[0], right[0]), spelled, precedence)
    return left


def _term(tokens: list[str]) -> _Piece:
    return _chain(tokens, ("*", "/", "//", "%"), _TERM)


def _unary(tokens: list[str]) -> _Piece:
    if tokens and tokens[-1] == "-":
        tokens.pop()
        operand = _unary(tokens)
        return ("neg", operand[0]), f"-{_bracketed(operand, _UNARY)}", _UNARY
    return _atom(tokens)


def _atom(tokens: list[str]) -> _Piece:
    token = tokens.pop() if tokens else ""
    if token == "(":
        inner = _sum(tokens)
        if not tokens or tokens.pop() != ")":
            raise _NotArithmetic
        return inner
    if not token or token in _PRECEDENCE or token in "()=" or iskeyword(token):
        raise _NotArithmetic
    if token[0].isdigit():
        value, spelled = _number(token)
        return value, spelled, _ATOMIC
    return token, token, _ATOMIC


def _bracketed(piece: _Piece, precedence: int) -> str:
    return piece[1] if piece[2] >= precedence else f"({piece[1]})"


# Everything else.

_UNPARSABLE = (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError)
_SIMPLE = (
    ast.Assign,
    ast.AugAssign,
    ast.AnnAssign,
    ast.Expr,
    ast.Import,
    ast.ImportFrom,
    ast.Pass,
    ast.Assert,
)


def _ast_statements(text: str) -> list[Statement]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the program's style, not ours
        tree = ast.parse(text)
    return [Statement(ast.unparse(node), node=node) for node in tree.body]


def _parse_tail(lines: list[str], start: int, statements: list[Statement], answer_variable: str) -> Parsed:
    """`lines[start:]` as a whole: the longest beginning of whole lines that parses."""
    first_error: SyntaxError | None = None
    end, tried = len(lines), 0
    while end > start:
        text = "\n".join(lines[start:end])
        try:
            tail = _ast_statements(text)
        except _UNPARSABLE as error:
            syntax_error = error if isinstance(error, SyntaxError) else SyntaxError(_reason(error))
            first_error = first_error or syntax_error
            end = min(end - 1, start + (syntax_error.lineno or len(lines)))
            tried += len(text)
            if tried > MAX_RETRIED:
                break
        else:
            for statement in tail:
                statements.append(statement)
                if statement.assigns(answer_variable):
                    return Parsed(tuple(statements))
            break
    if first_error is None:
        return Parsed(tuple(statements))
    line = start + (first_error.lineno or 1)
    return Parsed(tuple(statements), first_error.msg, line, first_error.offset or 1)


def _reason(error: BaseException) -> str:
    return str(error) or ("too deeply nested" if isinstance(error, MemoryError) else type(error).__name__)


def _bound_names(node: ast.stmt) -> list[ast.Name]:
    match node:
        case ast.Assign(targets=targets):
            pass
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target, value=ast.expr()):
            targets = [target]
        case _:
            return []
    names = (name for target in targets for name in ast.walk(target))
    return [name for name in names if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)]
