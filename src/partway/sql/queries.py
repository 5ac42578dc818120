"""Text to steps: a query is its common table expressions, one step each, and the select that is its answer.

sqlglot parses and spells, so that keywords, spaces, quotes and brackets that mean nothing make no difference.
It would also translate what other databases understand. Here it must not: what is run is what was written,
and nothing is spelled much longer than it is read. Steps joined by newlines are SQL again, and so is every
beginning but for the select that is still to come:

    WITH t1 AS (SELECT MAX(population) FROM state)
    , t2 AS (SELECT state_name FROM state WHERE population = (SELECT * FROM t1))
    SELECT river_name FROM river WHERE traverse IN (SELECT * FROM t2)
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError, TokenError
from sqlglot.tokens import Token, TokenType

from partway.errors import SolutionError, one_line, suggestion
from partway.solution import Solution
from straightline import BoundedCache

FIRST, NEXT = "WITH ", ", "  # how a step that is not the answer begins
MAX_CHARACTERS = 10_000
MAX_LINES = 50  # in search of the longest beginning that parses
MAX_SEARCHED = 2 * MAX_CHARACTERS  # in all of these beginnings
MAX_NESTED = 25  # brackets and CASEs; each costs the parser 24 calls of the thousand that Python allows
MAX_REMEMBERED = 32 << 20  # bytes of texts, and as many of lines
MOVES = 10  # of the parser, forward or back, for each token; what tries everything twice needs 2 ** n

_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_OPERATORS = (exp.Binary, exp.Unary, exp.Between, exp.In, exp.Interval, exp.Bracket, exp.Cast)
_NOT_A_QUERY = "expected a query: WITH ... SELECT ..."
# What a query of SQLite's is made of; a function is whatever SQLite makes of its name.
_NAMES = """Add Alias All And Anonymous Between BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr
BitwiseRightShift Boolean CTE Case Cast Collate Column CurrentDate CurrentTime CurrentTimestamp
DPipe DataType DataTypeParam Distinct Div EQ Escape Except Exists Filter From GT GTE Glob Group
Having HexString Identifier If In Intersect Is JSONExtract JSONExtractScalar JSONPath JSONPathKey
JSONPathRoot JSONPathSubscript Join LT LTE Like Limit Literal Match Mod Mul NEQ Neg Not Null
NullSafeEQ NullSafeNEQ Offset Or Order Ordered Paren Select Star Sub Subquery Table TableAlias Tuple
Union Values Var Where Window WindowSpec With"""
_NODES = frozenset(getattr(exp, name) for name in _NAMES.split())
_NUMERIC = {exp.DType[name] for name in ("BOOLEAN", "DATE", "DATETIME", "DECIMAL", "TIME", "TIMESTAMP")}
_WORDS = """add all alter and any as autoincrement between case cast check collate commit constraint create
cross current_date current_time current_timestamp default deferrable delete distinct drop else
escape except exists false fetch for foreign from glob group having in index inner insert intersect
into is isnull join lateral like limit not nothing notnull null on or order outer primary qualify
raise recursive references regexp returning rollback select set table then to transaction true union
unique update using values when where with"""
_RESERVED = frozenset(_WORDS.split())  # names that need their quotes
_IS_NAME = "is_name"  # of what stands in backticks or square brackets
_DEPTHS = {TokenType.L_PAREN: 1, TokenType.CASE: 1, TokenType.R_PAREN: -1, TokenType.END: -1}
logging.getLogger("sqlglot").setLevel(logging.ERROR)  # what a model writes badly is no news


@dataclass(frozen=True)
class QueryStep:
    """A step: its text as a solution has it, and what of it is run."""

    text: str
    name: str = ""  # of the common table expression; the last select has none
    run: str = ""


@dataclass(frozen=True)
class ParsedQuery:
    """The steps of a text up to where it does not parse, and what is wrong there."""

    steps: tuple[QueryStep, ...]
    error: str | None = None

    @property
    def solution(self) -> Solution:
        return Solution(tuple(step.text for step in self.steps))


def dialect_flaw(name: str) -> str | None:
    """Why sqlglot has no such dialect, None if it has."""
    try:
        sqlglot.Dialect.get_or_raise(name)
    except ValueError:
        return f"expected a dialect of sqlglot's{suggestion(name, sqlglot.Dialect.classes)}"
    return None


_texts = BoundedCache[tuple[str, str], ParsedQuery](MAX_REMEMBERED, lambda key, _: 1_000 + 3 * len(key[0]))
_lines = BoundedCache[tuple[str, bool, str], QueryStep | str](
    MAX_REMEMBERED, lambda key, _: 500 + 3 * len(key[0])
)


def read(text: str, dialect: str = "sqlite") -> ParsedQuery:
    """The steps of a text; of one that does not parse, those of the longest beginning that does.

    >>> [step.text for step in read("with a as (select 1 x), b as (select * from a) select (x) from b").steps]
    ['WITH a AS (SELECT 1 AS x)', ', b AS (SELECT * FROM a)', 'SELECT x FROM b']
    """
    if len(text) > MAX_CHARACTERS:
        return ParsedQuery((), f"a text of {len(text):,} characters, the limit is {MAX_CHARACTERS:,}")
    known = _texts.get((text, dialect))
    if known is None:
        known = _read(text, dialect)
        _texts.put((text, dialect), known)
    return known


def _read(text: str, dialect: str) -> ParsedQuery:
    by_lines = _read_lines(text, dialect)
    if by_lines.error is None:
        return by_lines
    try:
        return ParsedQuery(tuple(_steps(tree_of(text, dialect), dialect)))
    except SolutionError as error:
        return max(_beginnings(text, dialect, str(error)), by_lines, key=lambda parsed: len(parsed.steps))


def _read_lines(text: str, dialect: str) -> ParsedQuery:
    """The steps of a text with one on each line, as models learn to write it: most lines are known."""
    steps: list[QueryStep] = []
    for line in text.strip().removesuffix(";").split("\n"):
        if steps and not steps[-1].name:
            return ParsedQuery(tuple(steps), "there is something after the last select")
        key = line.strip(), not steps, dialect
        found = _lines.get(key)
        if found is None:
            found = _read_line(*key)
            _lines.put(key, found)
        if isinstance(found, str):
            return ParsedQuery(tuple(steps), found)
        steps.append(found)
    return ParsedQuery(tuple(steps))


def _read_line(line: str, is_first: bool, dialect: str) -> QueryStep | str:
    """The step that a line is, or what is wrong with it."""
    begins = line[: len(FIRST)].upper() == FIRST if is_first else line.startswith(",")
    if begins:
        line = f"{line if is_first else f'WITH {line[1:]}'} SELECT 1"
    try:
        steps = list(_steps(tree_of(line, dialect), dialect, is_first))
    except SolutionError as error:
        return str(error)
    if len(steps) != 1 + begins:
        return "expected one step per line"
    return steps[0]


def _beginnings(text: str, dialect: str, error: str) -> ParsedQuery:
    """The steps of the longest beginning of whole lines that parses."""
    lines, searched = text.rstrip().split("\n"), 0
    if text.lstrip()[: len(FIRST)].upper() == FIRST:
        for length in range(min(len(lines), MAX_LINES), 0, -1):
            beginning = "\n".join(lines[:length]).rstrip().rstrip(",")
            searched += len(beginning)
            if searched > MAX_SEARCHED:
                break
            try:
                steps = tuple(_steps(tree_of(f"{beginning}\nSELECT 1", dialect), dialect))
            except SolutionError:  # does not parse, or cannot be spelled
                continue
            return ParsedQuery(steps[:-1], error)
    return ParsedQuery((), error)


@cache
def _reader(dialect: str) -> tuple[sqlglot.Dialect, type[sqlglot.Parser]]:
    """A dialect, and what reads it, takes functions as they are called and gives up in time."""
    spoken = sqlglot.Dialect.get_or_raise(dialect)
    usual = spoken.parser_class

    def advance(self: Any, times: int = 1) -> None:
        self.moves += 1
        if self.moves > MOVES * (len(self._tokens) + MOVES):
            raise SolutionError("cannot be read: too many ways to understand it")
        usual._advance(self, times)

    own = {
        "FUNCTIONS": {},
        "FUNCTION_PARSERS": {"CAST": usual.FUNCTION_PARSERS["CAST"]},
        "NO_PAREN_FUNCTION_PARSERS": {"CASE": usual.NO_PAREN_FUNCTION_PARSERS["CASE"]},
        "moves": 0,
        "_advance": advance,
    }
    return spoken, type("Parser", (usual,), own)


def _nested(tokens: Sequence[Token]) -> int:
    """How deep the deepest bracket or CASE is."""
    steps = (_DEPTHS.get(token.token_type, 0) for token in tokens)
    return max(accumulate(steps), default=0)


def tree_of(text: str, dialect: str = "sqlite") -> exp.Query:
    """The query that a text is; `SolutionError` if it is not one."""
    spoken, parser = _reader(dialect)
    try:
        tokens = spoken.tokenize(text)
        if _nested(tokens) > MAX_NESTED:
            raise SolutionError(f"cannot be read: more than {MAX_NESTED} brackets and CASEs in each other")
        trees = parser(dialect=spoken).parse(tokens, text)
    except ParseError as error:
        told = error.errors[0] if error.errors else {}
        where = f"line {told.get('line')}, column {told.get('col')}: " if told.get("line") else ""
        raise SolutionError(f"{where}{told.get('description') or one_line(error)}") from None
    except (TokenError, SqlglotError, RecursionError, ValueError) as error:
        raise SolutionError(f"cannot be read: {one_line(error)[:200]}") from None
    tree = trees[0] if len(trees) == 1 else None
    is_empty = isinstance(tree, exp.Select) and not tree.expressions
    if not isinstance(tree, exp.Query) or isinstance(tree, exp.Table) or is_empty:
        raise SolutionError(_NOT_A_QUERY)
    casts = sum(token.text.upper() == "CAST" for token in tokens)  # others are `x::INT` and `DATE 'x'`
    for node in tree.walk():
        if isinstance(node, exp.Identifier) and node.quoted and text[node.meta.get("start", 0)] in "`[":
            node.meta[_IS_NAME] = True
        casts -= isinstance(node, exp.Cast)
        if _is_foreign(node) or casts < 0:
            raise SolutionError(f"SQLite has no such {type(node).__name__}")
    return tree


def _is_foreign(node: exp.Expression) -> bool:
    """Whether sqlglot would have to put something else in its place, perhaps far longer."""
    if isinstance(node, exp.Join):
        return bool({node.kind, node.side} & {"SEMI", "ANTI"})
    if isinstance(node, exp.Between | exp.Distinct):
        return bool(node.args.get("symmetric") or node.args.get("on"))
    return type(node) not in _NODES


def _steps(tree: exp.Query, dialect: str, is_first: bool = True) -> Iterator[QueryStep]:
    """The steps of a parsed query, each spelled alone."""
    try:
        tree = normal(tree)
        clause = tree.args.get("with_")
        tree.set("with_", None)
        for cte in clause.expressions if clause else ():
            begin = ("WITH RECURSIVE " if clause.recursive else FIRST) if is_first else NEXT
            yield _step(cte, dialect, begin)
            is_first = False
        yield _step(tree, dialect)
    except (RecursionError, SqlglotError, ValueError) as error:
        raise SolutionError(f"cannot be spelled: {one_line(error)[:200]}") from None


def _step(tree: exp.CTE | exp.Query, dialect: str, begin: str = "") -> QueryStep:
    text, *run = (
        tree.sql(spoken, comments=False, unsupported_level=ErrorLevel.RAISE)
        for spoken in dict.fromkeys((dialect, "sqlite"))
    )
    return QueryStep(f"{begin}{text}", tree.alias if begin else "", *(run or [text]))


def normal(tree: exp.Query) -> exp.Query:
    """The query with names in lower case, without quotes and brackets that mean nothing.

    A name in double quotes that stands alone may be a text to SQLite, so it is left as it is.

    >>> text = 'SELECT ((A)) FROM `T` AS X WHERE ((X."B" = 1) AND ("Ohio" = c))'
    >>> normal(sqlglot.parse_one(text, dialect="sqlite")).sql("sqlite")
    'SELECT a FROM t AS x WHERE x.b = 1 AND "Ohio" = c'
    """
    while isinstance(tree, exp.Subquery) and not tree.alias and isinstance(tree.this, exp.Query):
        tree = tree.this
    for node in list(tree.walk()):
        if isinstance(node, exp.Paren | exp.Subquery) and _is_redundant(node):
            node.replace(node.this)
        elif isinstance(node, exp.Join) and (node.kind in ("CROSS", "INNER") or node.side):
            node.set("kind", None)  # CROSS, unlike a comma, only fixes the order in which SQLite looks
        elif isinstance(node, exp.Ordered) and not node.args.get("desc"):
            node.set("desc", None)
        elif isinstance(node, exp.Identifier):
            parent = node.parent
            is_alone = isinstance(parent, exp.Column) and not parent.table and _IS_NAME not in node.meta
            if (not node.quoted or not is_alone) and _PLAIN_NAME.match(node.name):
                node.set("this", node.name.lower())
                node.set("quoted", node.quoted and node.name in _RESERVED)
        elif isinstance(node, exp.Cast) and node.to.this in _NUMERIC:
            node.set("to", exp.DataType(this=exp.DType.USERDEFINED, kind="NUMERIC"))  # as to SQLite
    return tree


def _is_redundant(bracket: exp.Paren | exp.Subquery) -> bool:
    inside, around = bracket.this, bracket.parent
    if isinstance(bracket, exp.Subquery):
        return isinstance(inside, exp.Subquery) and not bracket.alias
    if not isinstance(inside, (*_OPERATORS, exp.Query, exp.Case)):
        return True
    if isinstance(around, exp.Paren) or not isinstance(around, _OPERATORS):
        return not isinstance(inside, exp.Query)
    if isinstance(around, exp.Connector) and not isinstance(inside, exp.Connector):
        return isinstance(inside, exp.Predicate)
    return isinstance(around, exp.Or) and isinstance(inside, exp.And)


@lru_cache(maxsize=1 << 12)
def is_ordered(solution: Solution, dialect: str = "sqlite") -> bool:
    """Whether the answer of a query has an order: its last select says one."""
    try:
        return bool(solution.steps) and tree_of(solution.steps[-1], dialect).args.get("order") is not None
    except SolutionError:
        return False


def compared_texts(solution: Solution, dialect: str = "sqlite") -> list[str]:
    """The texts of a query, but for those that its functions are given: formats, separators, paths."""
    try:
        trees = [tree_of(text, dialect) for text in _whole_texts(solution)]
    except SolutionError:
        return []
    literals = [literal for tree in trees for literal in tree.find_all(exp.Literal) if literal.is_string]
    return list(dict.fromkeys(one.this for one in literals if not isinstance(one.parent, exp.Func)))


@lru_cache(maxsize=1 << 12)
def alpha_query(solution: Solution, dialect: str = "sqlite") -> Solution:
    """The solution with its own names, of steps, tables and columns, as v0, v1, ... in their order.

    >>> query = ("WITH a AS (SELECT MAX(n) AS m FROM t)", "SELECT x.n FROM t AS x, a WHERE m = x.n")
    >>> alpha_query(Solution(query)).steps
    ('WITH v0 AS (SELECT MAX(n) AS v1 FROM t)', 'SELECT v2.n FROM t AS v2, v0 WHERE v1 = v2.n')
    """
    try:
        trees = [tree_of(text, dialect) for text in _whole_texts(solution)]
    except SolutionError:
        return solution
    names: dict[str, str] = {}
    used: set[str] = set()  # columns of earlier steps and of this one: not ours, whatever they are called
    for tree in trees:
        used |= {column.name for column in tree.find_all(exp.Column)} - names.keys()
        for node in tree.find_all(exp.CTE, exp.TableAlias, exp.Alias, bfs=False):
            own = node.alias if isinstance(node, (exp.CTE, exp.Alias)) else node.name
            if own and own not in names and not (isinstance(node, exp.Alias) and own in used):
                names[own] = f"v{len(names)}"
    for tree in trees:
        for identifier in list(tree.find_all(exp.Identifier)):
            if identifier.name in names:
                identifier.set("this", names[identifier.name])
    texts = [normal(tree).sql(dialect) for tree in trees]
    return Solution(tuple(text.removesuffix(" SELECT 1") for text in texts))


def _whole_texts(solution: Solution) -> Iterator[str]:
    for text in solution.steps:
        if text.startswith(NEXT):
            yield f"{FIRST}{text[len(NEXT) :]} SELECT 1"
        else:
            yield f"{text} SELECT 1" if text.startswith(FIRST) else text
