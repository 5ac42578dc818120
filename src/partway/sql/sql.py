"""SQL as a language: `language: sql`, whose programs are queries of the database that a problem carries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from sys import getsizeof
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from partway.errors import ConfigError, ProblemError, SolutionError
from partway.language import Failure, Trace
from partway.language.language import Attempt, Dedup, Instruction, Language
from partway.problem import Problem
from partway.solution import Solution
from partway.sql import workers
from partway.sql.databases import Database, database_of
from partway.sql.row_sets import ColumnOrder, Rows, rows_of, state_of, text_of
from partway.sql.views import Prompt, SchemaStyle, rows_by_step, schema_text, words_of
from partway.sql.workers import Answered, Query
from straightline import BoundedCache

if TYPE_CHECKING:
    from partway.sql.queries import ParsedQuery

ROWS = "rows"  # what a step sets
VARIATIONS = 4
MAX_REMEMBERED, MAX_REMEMBERED_EACH = 128 << 20, 4 << 20  # bytes


def _bytes_of(query: Query, found: Answered) -> int:
    """About how much memory it takes to remember a query with its rows."""
    rows = [row for table in found.tables for row in table]
    text = len(query.written) + sum(len(definition) for _, definition in query.steps)
    return 1_000 + text + sum(100 + sum(8 + getsizeof(cell) for cell in row) for row in rows)


_known = BoundedCache[Query, Answered](MAX_REMEMBERED, _bytes_of, MAX_REMEMBERED_EACH)


@dataclass(frozen=True)
class SQLLanguage(Language):
    """SQL, one step per common table expression; the rows of the last select are the answer.

    A problem's `context` is its database: a SQLite file, the name of one in the folder `database`, or the
    statements that make it.

    >>> tables = "CREATE TABLE t (n, a); INSERT INTO t VALUES ('eve', 3)"
    >>> problem = Problem("p", "Who?", [["eve"]], context=tables)
    >>> language = SQLLanguage()
    >>> (trace,) = language.trace_all([(problem, "with o as (select max(a) from t) select n from t, o")])
    >>> trace.states, trace.answer, language.is_correct(problem, trace)
    (('3', "'eve'"), [['eve']], True)
    """

    metrics: ClassVar[tuple[str, ...]] = ("partway.sql.views:execution_accuracy",)
    _room: ClassVar[
        tuple[int, Prompt] | tuple[()]
    ] = ()  # tokens that a schema may take, and what counts them

    database: str = field(
        default="", metadata={"help": "The folder of the databases that problems name, or one file for all."}
    )
    dialect: str = field(default="sqlite", metadata={"help": "The dialect of SQL, as sqlglot names it."})
    state: Literal["multiset", "set"] = field(
        default="multiset",
        metadata={"help": "Whether repeated rows count (`multiset`) or not (`set`, as in BIRD)."},
    )
    column_order: ColumnOrder = field(
        default="fixed",
        metadata={"help": "With `any`, tables are equal in any order of columns, as in Spider."},
    )
    schema: SchemaStyle = field(
        default="columns",
        metadata={
            "help": "What a prompt shows of the database: `columns`, its statements (`ddl`) or `none`."
        },
    )
    schema_values: int = field(
        default=0, metadata={"help": "How many values of each column `columns` shows."}
    )
    schema_template: str = field(
        default="{schema}\n\n{question}", metadata={"help": "How a prompt joins {schema} and {question}."}
    )
    schema_limit: int = field(
        default=6_000, metadata={"help": "Most characters of a schema; a longer one is cut, with a warning."}
    )

    def __post_init__(self) -> None:
        for name in ("{schema}", "{question}"):
            if name not in self.schema_template:
                raise ConfigError(f"schema_template is {self.schema_template!r}, expected {name} in it")
        is_usual = self.dialect == "sqlite"
        if not is_usual and (flaw := _queries().dialect_flaw(self.dialect)) is not None:
            raise ConfigError(f"dialect is {self.dialect!r}, {flaw}")

    def parse(self, text: str) -> Solution:
        parsed = self._read(text)
        if parsed.error is not None:
            raise SolutionError(parsed.error)
        return parsed.solution

    def _read(self, text: str) -> ParsedQuery:
        found: ParsedQuery = _queries().read(text, self.dialect)
        return found

    def trace_all(self, pairs: Sequence[Attempt], whole: bool = False) -> list[Trace]:
        parsed = [self._read(text) for _, text in pairs]
        queries = [self._query(*pair, one) for pair, one in zip(pairs, parsed, strict=True)]
        found = _answers([query for query in queries if isinstance(query, Query)], whole)
        return [
            self._trace(one, found[query] if isinstance(query, Query) else query)
            for one, query in zip(parsed, queries, strict=True)
        ]

    def _query(self, problem: Problem, text: str, parsed: ParsedQuery) -> Query | Answered:
        """The query to be run, or why there is none.

        The answer is what SQLite makes of the text itself: sqlglot also understands what SQLite refuses.
        """
        try:
            database = self.database_for(problem)
        except ProblemError as error:
            return Answered((), Failure("error", str(error), 0))
        is_own = parsed.error is not None or self.dialect != "sqlite" or text == parsed.solution.text
        return Query(database, tuple((step.name, step.run) for step in parsed.steps), "" if is_own else text)

    def database_for(self, problem: Problem) -> Database:
        """The database of a problem."""
        return database_of(problem.context, self.database)

    def _trace(self, parsed: ParsedQuery, found: Answered) -> Trace:
        failure, steps = found.failure, parsed.steps
        if failure is None and parsed.error is not None:
            failure = Failure("error", f"SyntaxError: {parsed.error}", len(steps))
        is_whole = failure is None and bool(steps) and not steps[-1].name
        return Trace(
            parsed.solution,
            tuple(
                state_of(t, as_set=self.state == "set", column_order=self.column_order) for t in found.tables
            ),
            tuple({ROWS: (table,)} for table in found.tables),
            failure,
            (found.tables[-1],) if is_whole else None,
            isolated=True,
        )

    def is_correct(self, problem: Problem, trace: Trace) -> bool:
        expected = rows_of(problem.answer)
        if not trace.has_answer or expected is None:
            return False
        has_order = problem.reference is not None and self.state != "set"  # a set has none
        ordered = has_order and _queries().is_ordered(problem.reference, self.dialect)
        return self._text(trace.answer, ordered) == self._text(expected, ordered)

    def _text(self, rows: Rows, ordered: bool) -> str:
        return text_of(rows, ordered=ordered, as_set=self.state == "set", column_order=self.column_order)

    def confirms(self, problem: Problem, trace: Trace) -> bool:
        """Whether each beginning gives the same rows when it is run whole, as SQL means it."""
        (again,) = self.trace_all([(problem, trace.solution.text)], whole=True)
        if again.states[: len(trace.states)] != trace.states:
            return False
        return not trace.has_answer or (
            again.has_answer and self._text(again.answer, True) == self._text(trace.answer, True)
        )

    def flaw(self, problem: Problem) -> str | None:
        try:
            database = self.database_for(problem)
        except ProblemError as error:
            return str(error)
        if (flaw := workers.load_flaw(database)) is not None:
            return flaw
        if problem.answer is not None and rows_of(problem.answer) is None:
            return f"expected rows, a list of lists, found {str(problem.answer)[:60]!r}"
        return None

    def variations(self, problem: Problem) -> list[Problem]:
        """The same problem on databases with other rows of the same tables."""
        return [
            replace(problem, context={"database": problem.context, "changed": seed})
            for seed in range(1, VARIATIONS + 1)
        ]

    def strange_literals(self, solution: Solution, question: str) -> tuple[str, ...]:
        """Texts that a query compares with and that stand nowhere in the question.

        Numbers are not doubted: what a large city is, or `LIMIT 1`, no question says.

        >>> query = Solution(("SELECT n FROM t WHERE s = 'New York' OR s LIKE '%ohio%'",))
        >>> SQLLanguage().strange_literals(query, "Which rivers are in Ohio?")
        ('New York',)
        """
        asked = f" {words_of(question)} "
        texts = _queries().compared_texts(solution, self.dialect)
        return tuple(text for text in texts if (said := words_of(text)) and f" {said} " not in asked)

    def form(self, solution: Solution, dedup: Dedup) -> Solution:
        form: Solution = solution if dedup == "ast" else _queries().alpha_query(solution, self.dialect)
        return form

    def end(self, text: str) -> int | None:
        end = text.find(";\n")
        return None if end < 0 else end + 2

    def rows_by_step(self, trace: Trace, against: Trace | None) -> Iterator[list[tuple[str, bool]]]:
        """The rows of each step as they are shown, and which of them are those of a reference."""
        return rows_by_step(trace, against)

    def question(self, problem: Problem) -> str:
        """The question with the schema of its database, as the settings want it."""
        if self.schema == "none":
            return problem.question
        database = self.database_for(problem).original
        schema = schema_text(database, self.schema, self.schema_values, self.schema_limit, *self._room)
        return self.schema_template.replace("{question}", problem.question).replace("{schema}", schema)

    def fitted(self, context_length: int, prompt: Prompt) -> SQLLanguage:
        """With schemas that take half of a context at most."""
        fitted = replace(self)
        object.__setattr__(fitted, "_room", (context_length // 2, prompt))  # not a setting
        return fitted

    @property
    def instruction(self) -> Instruction:
        return Instruction("SQL", "selects the answer", comment="-- ", fence="sql")


@cache
def _queries() -> Any:
    """What reads queries, imported with the first one: settings can be told without sqlglot."""
    try:
        from partway.sql import queries
    except ModuleNotFoundError as error:
        raise ConfigError(f"language sql needs {error.name}: pip install 'partway[sql]'") from error
    return queries


def _answers(queries: Sequence[Query], whole: bool) -> dict[Query, Answered]:
    """What becomes of each query; equal ones of equal databases are run once, unless as second opinion."""
    found = {} if whole else {query: known for query in queries if (known := _known.get(query)) is not None}
    new = [query for query in dict.fromkeys(queries) if query not in found]
    for query, answered in zip(new, workers.run(new, whole=whole), strict=True):
        found[query] = answered
        failure = answered.failure  # what ran out of time, or was killed, may not do so again
        if not whole and (failure is None or (failure.is_own and failure.kind in ("error", "forbidden"))):
            _known.put(query, answered)
    return found
