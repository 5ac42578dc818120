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
from keyword import kwlist
from typing import TypeAlias

from partway.caching import BoundedCache

Expression: TypeAlias = "int | float | str | tuple[str, Expression] | tuple[str, Expression, Expression]"
"""Arithmetic: a number, a name, ("neg", operand) or (operator, left, right)."""

MAX_CHARACTERS = 16_384  # with the next two, so that no text keeps this process busy for more than 50 ms
MAX_STATEMENTS = 2_048  # ends of lines and semicolons: statements cost most
MAX_SIGNS = 4_608  # what is no letter, digit or blank: the other nodes of a tree; people write half as many
MAX_READ = 20_480  # characters in all, in search of the longest beginning that parses: of a long text, once
MAX_CACHED_BYTES = 96 << 20
MAX_ARITHMETIC = 300  # characters; longer lines are left to `ast`


@dataclass(slots=True, eq=False)
class Statement:
    """One step: its canonical text and either `target = expression` in plain arithmetic or its AST node."""

    text: str
    target: str = ""
    expression: Expression = 0
    node: ast.stmt | None = None

    def assigns(self, variable: str) -> bool:
        """Whether this is a simple statement that binds `variable`."""
        if self.node is None:
            return self.target == variable
        return any(name.id == variable for name in _bound_names(self.node))


@dataclass(slots=True)
class Parsed:
    """The statements of the longest beginning of whole lines that parses, and what is wrong behind it."""

    statements: tuple[Statement, ...]
    error: str | None = None
    line: int = 0
    column: int = 0

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(statement.text for statement in self.statements)


def _bytes_of(line: str, statement: Statement) -> int:
    """What a cached line takes: a tree far more than its text."""
    return 300 + len(line) * (50 if statement.node is None else 200)


known_lines = BoundedCache[str, Statement](MAX_CACHED_BYTES, _bytes_of)


def parse(text: str, answer_variable: str) -> Parsed:
    """The statements of `text`, cut after the first one that assigns the answer variable."""
    if (excess := _excess(text)) is not None:
        return Parsed((), excess, 1, 1)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    statements: list[Statement] = []
    recent = known_lines.recent  # where nearly every line is found, in one look-up
    for number, line in enumerate(lines):
        statement = recent.get(line) or known_lines.get(line)
        if statement is None:
            statement = parse_line(line)
            if statement is None:
                if not line or line.isspace():
                    continue
                return _parse_tail(lines, number, statements, answer_variable)
            known_lines.put(line, statement)
        statements.append(statement)
        if answer_variable and statement.assigns(answer_variable):
            break
    return Parsed(tuple(statements))


_NO_SIGNS = bytes(code for code in range(256) if code > 127 or chr(code).isalnum() or chr(code) in "_ \t")


def _excess(text: str, share: int = 1) -> str | None:
    """Why a text would take too long to read, counted before it is; one part in `share` is read of it."""
    characters, statements, signs = (most // share for most in (MAX_CHARACTERS, MAX_STATEMENTS, MAX_SIGNS))
    if len(text) > characters:
        return f"text of {len(text):,} characters, at most {characters:,} are read"
    if len(text) <= statements:  # too short for any of it
        return None
    if (ends := sum(map(text.count, "\n\r;"))) > statements:
        return f"{ends:,} lines and semicolons, at most {statements:,} are read"
    found = len(text.encode("utf-8", "surrogatepass").translate(None, _NO_SIGNS))
    return f"{found:,} signs, at most {signs:,} are read" if found > signs else None


def end_of_solution(text: str, variable: str) -> int | None:
    """Where the first closed line ends that completes a step which assigns `variable`; None if none does.

    Text that is still being written is read line by line, and counting brackets tells steps apart. So an end
    may be missed (behind a text in three quotation marks, say), but no step is cut in two.

    >>> end_of_solution("n0 = 1\\nanswer = n0 * 2\\nn1 = 3", "answer")
    23
    >>> end_of_solution("answer = max(\\n", "answer"), end_of_solution("if n0:\\n    answer = 1\\n", "answer")
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
        if not text[start].isspace() and _ends_by_assigning(text[start : end - 1], variable):
            return end
        start = end
    return None


def _ends_by_assigning(step: str, variable: str) -> bool:
    if variable not in step:
        return False
    parsed = parse(step, variable)
    return parsed.error is None and any(last.assigns(variable) for last in parsed.statements[-1:])


def parse_line(line: str) -> Statement | None:
    """The simple statement that `line` is on its own, None if it is none or may need its neighbours."""
    if (statement := parse_arithmetic(line)) is not None:
        return statement
    if line[:1].isspace() or len(line) > MAX_ARITHMETIC:
        return None
    try:
        body = parse_tree(line).body
        is_simple = len(body) == 1 and isinstance(body[0], _SIMPLE)
        return Statement(ast.unparse(body[0]), node=body[0]) if is_simple else None
    except UNPARSABLE:
        return None


# Plain arithmetic. Only ASCII: a name may be spelled in several ways otherwise, and \d has many digits.


def parse_arithmetic(line: str) -> Statement | None:
    """The line of plain arithmetic, None if it is something else."""
    match = _SHORT(line)
    if match is not None and (statement := _short_statement(line, match)) is not None:
        return statement
    return _arithmetic(line) if len(line) <= MAX_ARITHMETIC and _ARITHMETIC(line) else None


_KEYWORDS = frozenset(kwlist)
_NAME = r"[A-Za-z][A-Za-z0-9_]*"
_NUMBER = r"(?:[1-9][0-9]{0,17}|0)(?:\.[0-9]{1,17})?"
_ATOM = rf"(?:({_NUMBER})|({_NAME}))"
_SHORT = re.compile(rf"({_NAME}) = {_ATOM}(?: (\*\*|//|[-+*/%]) {_ATOM})?").fullmatch
_ARITHMETIC = re.compile(rf"{_NAME} *=[-+*/%(). A-Za-z0-9_]+").fullmatch
_TOKEN = re.compile(rf"{_NUMBER}(?![0-9.A-Za-z_])|{_NAME}|//|\*\*|[-+*/%()=]").findall

_NO_OPERATOR, _SUM, _TERM, _UNARY, _ATOMIC = range(5)
_PRECEDENCE = {"+": _SUM, "-": _SUM, "*": _TERM, "/": _TERM, "//": _TERM, "%": _TERM}


class _NotArithmetic(Exception):
    """The line is something else: leave it to `ast`."""


def _short_statement(line: str, match: re.Match[str]) -> Statement | None:
    """`name = atom` and `name = atom op atom`, the bulk of all lines; None if spelled unlike Python does."""
    target, left_number, left_name, operator, right_number, right_name = match.groups()
    if target in _KEYWORDS or left_name in _KEYWORDS or right_name in _KEYWORDS:
        return None
    left = left_name or _number_as_spelled(left_number)
    if operator is None:
        return None if left is None else Statement(line, target, left)
    right = right_name or _number_as_spelled(right_number)
    return None if left is None or right is None else Statement(line, target, (operator, left, right))


def _number_as_spelled(text: str) -> int | float | None:
    """The number, unless Python spells it differently, as it does 2.50."""
    value, spelled = _number(text)
    return value if spelled == text else None


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
        expression, text, _ = _chain(tokens)
    except _NotArithmetic:
        return None
    if tokens or target in _KEYWORDS or not target[0].isalpha():
        return None
    return Statement(f"{target} = {text}", target, expression)


_Piece: TypeAlias = tuple[Expression, str, int]  # an expression, its spelling, how tightly it binds


def _chain(tokens: list[str], least: int = _SUM) -> _Piece:
    """Operands joined by operators that bind at least so tightly; `tokens` is consumed from its end."""
    left = _unary(tokens)
    while tokens and (precedence := _PRECEDENCE.get(tokens[-1], _NO_OPERATOR)) >= least:
        operator = tokens.pop()
        right = _chain(tokens, precedence + 1)
        spelled = f"{_bracketed(left, precedence)} {operator} {_bracketed(right, precedence + 1)}"
        left = ((operator, left[0], right[0]), spelled, precedence)
    return left


def _unary(tokens: list[str]) -> _Piece:
    if tokens and tokens[-1] == "-":
        tokens.pop()
        operand = _unary(tokens)
        return ("neg", operand[0]), f"-{_bracketed(operand, _UNARY)}", _UNARY
    return _atom(tokens)


def _atom(tokens: list[str]) -> _Piece:
    token = tokens.pop() if tokens else ""
    if token == "(":
        inner = _chain(tokens)
        if not tokens or tokens.pop() != ")":
            raise _NotArithmetic
        return inner
    if not token or token in _PRECEDENCE or token in "()=" or token in _KEYWORDS:
        raise _NotArithmetic
    if token[0].isdigit():
        value, spelled = _number(token)
        return value, spelled, _ATOMIC
    return token, token, _ATOMIC


def _bracketed(piece: _Piece, precedence: int) -> str:
    return piece[1] if piece[2] >= precedence else f"({piece[1]})"


# Everything else.

UNPARSABLE = (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError)
# Statements that are whole on one line, whatever the next one holds.
_SIMPLE = (
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr),
    *(ast.Import, ast.ImportFrom, ast.Pass, ast.Assert),
)


def parse_tree(text: str) -> ast.Module:
    """The tree of a text; any error of UNPARSABLE if it has none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the program's style, not ours
        return ast.parse(text)


def _parse_tail(lines: list[str], start: int, statements: list[Statement], answer_variable: str) -> Parsed:
    """`lines[start:]` as a whole: the longest beginning of whole lines that parses."""
    tail, _, error = _longest_beginning(lines[start:])
    for statement in tail:
        statements.append(statement)
        if statement.assigns(answer_variable):
            return Parsed(tuple(statements))
    if error is None:
        return Parsed(tuple(statements))
    return Parsed(tuple(statements), error.msg, start + (error.lineno or 1), error.offset or 1)


def longest_parsed(text: str) -> tuple[list[ast.stmt], bool]:
    """The statements of the longest beginning of whole lines that parses, and whether text is left.

    Only half as much is read as `parse` does: who asks spells the statements several times.
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
            # Nothing behind the line of the error can help; the line itself may be whole without what
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
            statements.append(Statement(ast.unparse(node), node=node))
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
