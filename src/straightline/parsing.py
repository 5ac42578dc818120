"""Parse text to statements in canonical form, as far as it parses.

Tracing spends most of its time on parsing. So lines of plain arithmetic (`t0 = n0 * (n1 + 2)`) have a parser
of their own, which also makes the function that computes them. It leaves other lines to `ast`. Both spell a
statement as `ast.unparse` does.
"""

from __future__ import annotations

import ast
import re
import threading
import warnings
from contextlib import suppress
from dataclasses import dataclass
from keyword import kwlist
from typing import Any, TypeAlias, cast

from straightline import arithmetic
from straightline.arithmetic import Run
from straightline.caching import BoundedCache

MAX_CHARACTERS = 16_384  # with the next two, so that no text keeps this process busy for more than 50 ms
MAX_STATEMENTS = 2_048  # ends of lines and semicolons: statements cost most
MAX_SIGNS = 4_608  # neither letter, digit nor blank: the other nodes of a tree; people write half as many
MAX_READ = 20_480  # characters in all, in search of the longest beginning that parses: of a long text, once
MAX_CACHED_BYTES = 128 << 20
MAX_LINE = 300  # characters of a line that is read by itself


@dataclass(slots=True, eq=False)
class Statement:
    """One step: its canonical text and what runs it, made of a tree when first needed."""

    text: str
    target: str = ""  # the variable that it sets, if it sets one by `=` or `+=`
    run: Run | None = None  # the value of `target`; where that is empty, a table of what is set
    node: ast.stmt | None = None  # None of plain arithmetic

    @classmethod
    def of(cls, node: ast.stmt) -> Statement:
        """The statement of a tree; any error of UNPARSABLE if it has no text."""
        match node:
            case ast.Assign(targets=[ast.Name(id=target)]) | ast.AugAssign(target=ast.Name(id=target)):
                return cls(ast.unparse(node), target, node=node)
        return cls(ast.unparse(node), node=node)

    def assigns(self, variable: str) -> bool:
        """Whether this is a simple statement that binds `variable`."""
        if self.target or self.node is None:
            return self.target == variable
        return any(name.id == variable for name in _bound_names(self.node))


@dataclass(slots=True)
class Parsed:
    """The statements of the longest beginning of whole lines that parses, and what is wrong after it."""

    statements: tuple[Statement, ...]
    error: str | None = None
    line: int = 0
    column: int = 0

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(statement.text for statement in self.statements)


def _bytes_of(line: str, statement: Statement) -> int:
    """What a cached line takes at most, its function included: every sign and every word is a node."""
    if statement.node is None:
        return 600 + 20 * len(line) + 350 * _signs(line)
    return 600 + 170 * len(line) + 1_200 * _signs(line)


known_lines = BoundedCache[str, Statement](MAX_CACHED_BYTES, _bytes_of)


def parse(text: str, until: str = "") -> Parsed:
    """The statements of `text`, cut after the first one that assigns `until`."""
    if (excess := _excess(text)) is not None:
        return Parsed((), excess, 1, 1)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    statements: list[Statement] = []
    recent = known_lines.recent  # where nearly every line is found, in one look-up
    for number, line in enumerate(lines):
        statement = recent.get(line) or _statement(line)
        if statement is None:
            if not line or line.isspace():
                continue
            return _parse_tail(lines, number, statements, until)
        statements.append(statement)
        if until and statement.assigns(until):
            break
    return Parsed(tuple(statements))


_NO_SIGNS = bytes(code for code in range(256) if code > 127 or chr(code).isalnum() or chr(code) in "_ \t")


def _signs(text: str) -> int:
    """How many characters are neither letters, digits nor blanks."""
    return len(text.encode("utf-8", "surrogatepass").translate(None, _NO_SIGNS))


def _excess(text: str, share: int = 1) -> str | None:
    """Why a text would take too long to read, counted before it is; one part in `share` is read of it."""
    characters, statements, signs = (most // share for most in (MAX_CHARACTERS, MAX_STATEMENTS, MAX_SIGNS))
    if len(text) > characters:
        return f"text of {len(text):,} characters, at most {characters:,} are read"
    if len(text) <= statements:  # too short for any of it
        return None
    if (ends := sum(map(text.count, "\n\r;"))) > statements:
        return f"{ends:,} lines and semicolons, at most {statements:,} are read"
    found = _signs(text)
    return f"{found:,} signs, at most {signs:,} are read" if found > signs else None


def end_of_program(text: str, until: str) -> int | None:
    """Where the first closed line ends that completes a step which assigns `until`; None if none does.

    This is for text that is still being written. It is read line by line, and counting brackets shows where
    steps end. So an end may be missed (after a text in three quotation marks, say); no step is cut in two.

    >>> end_of_program("n0 = 1\\nanswer = n0 * 2\\nn1 = 3", "answer")
    23
    >>> end_of_program("answer = max(\\n", "answer"), end_of_program("if n0:\\n    answer = 1\\n", "answer")
    (None, None)
    """
    open_brackets = start = end = 0
    for line in text.split("\n")[:-1]:
        end += len(line) + 1
        if '"""' in line or "'''" in line:
            return None
        open_brackets += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        if open_brackets or line.endswith("\\"):
            continue
        if not text[start].isspace() and _ends_by_assigning(text[start : end - 1], until):
            return end
        start = end
    return None


def _ends_by_assigning(step: str, until: str) -> bool:
    if until not in step:
        return False
    parsed = parse(step, until)
    return parsed.error is None and any(last.assigns(until) for last in parsed.statements[-1:])


def lines_of(text: str) -> list[Statement] | None:
    """The statements of a text if every line is one; None if not."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    recent = known_lines.recent
    try:
        return [recent[line] for line in lines]
    except KeyError:
        pass
    statements = []
    for line in lines:
        statement = recent.get(line) or _statement(line)
        if statement is None:
            return None
        statements.append(statement)
    return statements


def _statement(line: str) -> Statement | None:
    """As `parse_line`, remembered."""
    statement = known_lines.get(line)
    if statement is None and (statement := parse_line(line)) is not None:
        known_lines.put(line, statement)
    return statement


def parse_line(line: str) -> Statement | None:
    """The simple statement in `line`; None if it is not one by itself."""
    if line[:1].isspace() or len(line) > MAX_LINE:
        return None
    if (statement := _arithmetic(line)) is not None:
        return statement
    try:
        body = parse_tree(line).body
        return Statement.of(body[0]) if len(body) == 1 and isinstance(body[0], _SIMPLE) else None
    except UNPARSABLE:
        return None


# Plain arithmetic. Only ASCII: a name may be spelled in several ways otherwise, and \d has many digits.

_NAME = r"[A-Za-z][A-Za-z0-9_]*"
_NUMBER = r"(?:[1-9][0-9]{0,17}|0)(?:\.[0-9]{1,17})?(?![0-9.A-Za-z_])"
_TOKEN = re.compile(rf"{_NUMBER}|{_NAME}|//|\*\*|[-+*/%()=]").findall
_KEYWORDS = frozenset(kwlist)

_NO_OPERATOR, _SUM, _TERM, _UNARY, _POWER, _NUMERIC, _NAMED = range(7)
_OPERATORS: dict[str, tuple[int, type[ast.operator]]] = {
    "+": (_SUM, ast.Add),
    "-": (_SUM, ast.Sub),
    "*": (_TERM, ast.Mult),
    "/": (_TERM, ast.Div),
    "//": (_TERM, ast.FloorDiv),
    "%": (_TERM, ast.Mod),
    "**": (_POWER, ast.Pow),
}
_NONE = (_NO_OPERATOR, ast.operator)


class _NotArithmetic(Exception):
    """The line is something else: leave it to `ast`."""


def _arithmetic(line: str) -> Statement | None:
    """A line of plain arithmetic, None if it is something else."""
    tokens: list[str] = _TOKEN(line)
    if len(tokens) < 3 or tokens[1] != "=" or sum(map(len, tokens)) != len(line) - line.count(" "):
        return None
    if "**" in tokens and len(tokens) != 5:  # it binds in its own ways: `x = a ** b` and nothing else
        return None
    tokens.reverse()
    target = tokens.pop()
    tokens.pop()
    try:
        run, text, _ = _chain(tokens)
    except _NotArithmetic:
        return None
    if tokens or target in _KEYWORDS or not target[0].isalpha():
        return None
    return Statement(f"{target} = {text}", target, run)


_Piece: TypeAlias = tuple[Run, str, int]  # an expression, its spelling, how tightly it binds


def _chain(tokens: list[str], least: int = _SUM) -> _Piece:
    """Operands joined by operators that bind at least so tightly; `tokens` is consumed from its end."""
    left = _operand(tokens)
    while tokens:
        precedence, operator = _OPERATORS.get(tokens[-1], _NONE)
        if precedence < least:
            break
        symbol = tokens.pop()
        right = _chain(tokens, precedence + 1)
        spelled = f"{_bracketed(left, precedence)} {symbol} {_bracketed(right, precedence + 1)}"
        if left[2] == right[2] == _NAMED:
            run = arithmetic.of_two(operator, left[1], right[1])
        else:
            run = arithmetic.binary(operator, left[0], right[0])
        left = (run, spelled, precedence)
    return left


def _operand(tokens: list[str]) -> _Piece:
    token = tokens.pop() if tokens else ""
    if token == "-":
        operand = _operand(tokens)
        return arithmetic.unary(ast.USub, operand[0]), f"-{_bracketed(operand, _UNARY)}", _UNARY
    if token == "(":
        inner = _chain(tokens)
        if not tokens or tokens.pop() != ")":
            raise _NotArithmetic
        return inner
    if token[:1].isdigit():
        number = float(token) if "." in token else int(token)
        return arithmetic.constant(number), repr(number), _NUMERIC
    if not token[:1].isalpha() or token in _KEYWORDS:
        raise _NotArithmetic
    return arithmetic.variable(token), token, _NAMED


def _bracketed(piece: _Piece, precedence: int) -> str:
    return piece[1] if piece[2] >= precedence else f"({piece[1]})"


# Everything else.

UNPARSABLE = (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError)
# Statements that are whole on one line, whatever the next one holds.
_SIMPLE = (
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr),
    *(ast.Import, ast.ImportFrom, ast.Pass, ast.Assert),
)


_PROGRAM = "<program>"  # the file that warnings about a text name
# An escape in a text, or a number before a word, that Python may warn of when it reads it.
_MAY_WARN = re.compile(
    r"""\\(?![\\'"abfnrtvx0-3\n])|0[xX]|[0-9]\.?[jJ]?(?:and|else|for|i[fns]|not|or)"""
).search
_FILTERING = threading.Lock()
_IGNORED = ("ignore", None, Warning, re.compile(_PROGRAM), 0)


def parse_tree(text: str) -> ast.Module:
    """The tree of a text; any error of UNPARSABLE if it has none."""
    if not _MAY_WARN(text):
        return _parse(text)
    # A warning about a program's style is not for the user, and an error if the user asks for errors. What
    # `catch_warnings` would put back, other threads may have changed; this concerns texts of ours alone.
    filters = cast("list[Any]", warnings.filters)
    with _FILTERING:  # a second entry that goes while Python looks through the list would hide this one
        filters.insert(0, _IGNORED)
        try:
            return _parse(text)
        finally:
            with suppress(ValueError):  # if somebody has cleared the list since
                filters.remove(_IGNORED)


def _parse(text: str) -> ast.Module:
    while True:
        try:
            return ast.parse(text, _PROGRAM)
        except SystemError as error:
            # Before 3.11.9 and 3.12.3 if two threads parse at once: CPython's issue 106905.
            if "recursion depth mismatch" not in str(error):
                raise


def _parse_tail(lines: list[str], start: int, statements: list[Statement], until: str) -> Parsed:
    """`lines[start:]` as a whole: the longest beginning of whole lines that parses."""
    tail, _, error = _longest_beginning(lines[start:])
    for statement in tail:
        statements.append(statement)
        if statement.assigns(until):
            return Parsed(tuple(statements))
    if error is None:
        return Parsed(tuple(statements))
    return Parsed(tuple(statements), error.msg, start + (error.lineno or 1), error.offset or 1)


def longest_parsed(text: str) -> tuple[list[ast.stmt], bool]:
    """The statements of the longest beginning of whole lines that parses, and whether text is left.

    It reads half as much as `parse` does, because its callers spell the statements several times.
    """
    if _excess(text, share=2) is not None:
        return [], not text.isspace()
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    statements, end, _ = _longest_beginning(lines)
    nodes = [statement.node for statement in statements if statement.node is not None]
    return nodes, any(line.strip() for line in lines[end:])


def _longest_beginning(lines: list[str]) -> tuple[list[Statement], int, SyntaxError | None]:
    """Also how many lines that beginning has, and the first error that was met."""
    first_error: SyntaxError | None = None
    end, read = len(lines), 0
    while end > 0:
        text = "\n".join(lines[:end])
        read += len(text)
        if read > MAX_READ:
            break
        try:
            tree = parse_tree(text)
        except UNPARSABLE as error:
            syntax_error = error if isinstance(error, SyntaxError) else SyntaxError(_reason(error))
            first_error = first_error or syntax_error
            # Nothing after the line of the error can help; the line itself may be whole without what
            # follows.
            end = min(end - 1, syntax_error.lineno or len(lines))
        else:
            return _spelled(tree, end, first_error)
    return [], 0, first_error


def _spelled(
    tree: ast.Module, end: int, first_error: SyntaxError | None
) -> tuple[list[Statement], int, SyntaxError | None]:
    """The statements of a tree, up to the line of the first that has no text: it is an error like others."""
    statements: list[Statement] = []
    for node in tree.body:
        try:
            statements.append(Statement.of(node))
        except UNPARSABLE as error:
            place = ("<unknown>", node.lineno, 1, None)
            whole = [one for one in statements if one.node and (one.node.end_lineno or 0) < node.lineno]
            return whole, node.lineno - 1, first_error or SyntaxError(_reason(error), place)
    return statements, end, first_error


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
