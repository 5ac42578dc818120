"""Text-to-SQL data to problems: GeoQuery as text2sql-data has it, Spider and BIRD.

A reference is the query as steps, where that gives the same rows: what stands in brackets, innermost first. A
row whose query fails or gives no rows is left out, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from sqlglot import exp

from partway.cli.options import counted
from partway.data.conversion import Conversion, Reject
from partway.data.sources import read_rows
from partway.errors import ProblemError, SolutionError
from partway.language import Failure
from partway.problem import Problem
from partway.solution import Solution
from partway.sql.databases import Database, database_of
from partway.sql.queries import read, tree_of
from partway.sql.sql import SQLLanguage
from partway.sql.workers import describe

Split = Literal["query", "question"]
Converted = Problem | Reject
Columns = frozenset[str]

FILES = {"train": ("train_spider.json", "train_others.json", "train.json"), "dev": ("dev.json",)}
FILES["test"] = ("test.json",)
AT_ONCE = 100  # rows whose spellings are run together


@dataclass(frozen=True)
class RawQuestion:
    """A row of the raw data: a question of a database and the query that answers it."""

    split: str
    row: int
    id: str
    question: str
    query: str
    database: Path
    meta: Mapping[str, Any] = field(default_factory=dict)


def convert_text2sql(
    source: Path, split: Split = "query", progress: Callable[[int, int], None] = lambda done, of: None
) -> Conversion:
    """Problems from a folder in one of the layouts, by split."""
    raw = _geoquery(source, split) if list(source.glob("geo*.json")) else _spider(source)
    try:
        questions = list(raw)
    except (LookupError, TypeError, AttributeError) as error:
        raise ProblemError(f"{source}: expected GeoQuery, Spider or BIRD as published ({error!r})") from None
    if not questions:
        raise ProblemError(
            f"{source}: expected geography.json, or train.json and dev.json as Spider and BIRD"
        )
    converted: list[Converted] = []
    for start in range(0, len(questions), AT_ONCE):
        converted += _converted(questions[start : start + AT_ONCE])
        progress(len(converted), len(questions))
    splits: dict[str, list[Problem]] = {name: [] for name in FILES}
    for question, found in zip(questions, converted, strict=True):
        if isinstance(found, Problem):
            splits[question.split].append(found)
    problems = [problem for listed in splits.values() for problem in listed]
    notes = {"references_by_steps": _by_steps(problems), "databases": len({q.database for q in questions})}
    rejects = [found for found in converted if isinstance(found, Reject)]
    return Conversion({name: kept for name, kept in splits.items() if kept}, rejects, notes)


def _geoquery(source: Path, by: Split) -> Iterator[RawQuestion]:
    """Templates of text2sql-data with their variables filled in; the first query of each is the reference."""
    (path,) = sorted(source.glob("geo*.json"))[:1]
    databases = sorted(file for end in ("sqlite", "db") for file in source.glob(f"geo*.{end}"))
    if not databases:
        raise ProblemError(f"{source}: expected geography.sqlite beside {path.name}")
    row = 0
    for number, template in enumerate(read_rows(path)):
        examples = {one["name"]: one["example"] for one in template["variables"]}
        for place, sentence in enumerate(template["sentences"]):
            split = template["query-split"] if by == "query" else sentence["question-split"]
            said = {name: value for name, value in sentence["variables"].items() if value}
            question, query = sentence["text"], template["sql"][0]
            for name, value in sorted((examples | said).items(), reverse=True):
                question, query = question.replace(name, value), query.replace(name, value)
            meta = {"template": number}
            yield RawQuestion(split, row, f"geo-{number}-{place}", question, query, databases[0], meta)
            row += 1


def _spider(source: Path) -> Iterator[RawQuestion]:
    """Spider's rows (`query`) and BIRD's (`SQL`, with `evidence`)."""

    @cache
    def database(name: str) -> Path:
        found = sorted(source.glob(f"*/{name}/{name}.sqlite"))
        return found[0] if found else source / "database" / name / f"{name}.sqlite"

    for split, names in FILES.items():
        number = 0
        for path in (source / name for name in names):
            for row in read_rows(path) if path.exists() else ():
                question = " ".join(filter(None, [row["question"].strip(), row.get("evidence", "").strip()]))
                query, name = row.get("query") or row.get("SQL") or "", row["db_id"]
                given = row.get("question_id", number)
                meta = {"db_id": name} | ({"difficulty": row["difficulty"]} if "difficulty" in row else {})
                yield RawQuestion(split, number, f"{split}-{given}", question, query, database(name), meta)
                number += 1


def _converted(questions: Sequence[RawQuestion]) -> list[Converted]:
    """Each row as a problem or as a reject; all spellings of all queries are run together."""
    language = SQLLanguage(schema="none")
    spellings = [_spellings(question) for question in questions]
    pairs = [
        (_problem(question), text)
        for question, texts in zip(questions, spellings, strict=True)
        if not isinstance(texts, Reject)
        for text in texts
    ]
    traces = iter(language.trace_all(pairs))
    converted: list[Converted] = []
    for question, texts in zip(questions, spellings, strict=True):
        if isinstance(texts, Reject):
            converted.append(texts)
            continue
        *others, itself = [next(traces) for _ in texts]
        if not itself.has_answer:
            failure = itself.failure or Failure("error", "", 0)
            reason = "the query fails" if failure.kind == "error" else f"the query: {failure.kind}"
            converted.append(_reject(question, reason, failure.message))
        elif not itself.answer:
            converted.append(_reject(question, "the query gives no rows", ""))
        else:
            asked = _problem(question, itself.answer, itself.solution)
            same = next((one for one in others if language.is_correct(asked, one)), itself)
            converted.append(_problem(question, itself.answer, same.solution))
    return converted


def _spellings(question: RawQuestion) -> list[str] | Reject:
    try:
        database = database_of(str(question.database))
        return list(lifted(question.query, _columns(database)))
    except ProblemError as error:
        return _reject(question, "no database", str(error))
    except SolutionError as error:
        return _reject(question, "the query cannot be read", str(error))


@cache
def _columns(database: Database) -> frozenset[str]:
    return frozenset(name.lower() for table in describe(database) for name, _ in table.columns)


def _problem(question: RawQuestion, answer: Any = None, reference: Solution | None = None) -> Problem:
    return Problem(
        question.id, question.question, answer, reference, question.meta, context=str(question.database)
    )


def _reject(question: RawQuestion, reason: str, detail: str) -> Reject:
    record = {"question": question.question, "query": question.query, "database": str(question.database)}
    return Reject(question.split, question.row, reason, detail, record)


def _by_steps(problems: Sequence[Problem]) -> dict[str, int]:
    lengths = sorted(len(problem.reference) for problem in problems if problem.reference is not None)
    return {counted(length, "step"): lengths.count(length) for length in dict.fromkeys(lengths)}


def lifted(text: str, columns: Columns, dialect: str = "sqlite") -> Iterator[str]:
    """Spellings of a query, the one with most steps and fewest aliases first, the query itself last.

    Whether they mean the same is for the database to say.

    >>> text = "SELECT S.name FROM state AS S WHERE S.area = (SELECT MAX(T.area) FROM state AS T)"
    >>> print(next(lifted(text, frozenset())))
    WITH t1 AS (SELECT MAX(area) FROM state)
    SELECT name FROM state WHERE area = (SELECT * FROM t1)
    """
    for changes in ((without_aliases, with_steps), (with_steps,), (without_aliases,), ()):
        yield _spelled(text, columns, dialect, changes)


def _spelled(
    text: str, columns: Columns, dialect: str, changes: tuple[Callable[[exp.Query], exp.Query], ...]
) -> str:
    tree = with_texts(tree_of(text, dialect), columns)
    for change in changes:
        tree = change(tree)
    parsed = read(tree.sql(dialect), dialect)
    if parsed.error is not None:
        raise SolutionError(parsed.error)
    return parsed.solution.text


def with_texts(tree: exp.Query, columns: Columns) -> exp.Query:
    """Texts in double quotes, which SQLite takes for names as long as a column is called so, in single ones.

    >>> with_texts(tree_of('SELECT "a" FROM t WHERE a = "ohio"'), frozenset({"a"})).sql()
    'SELECT "a" FROM t WHERE a = \\'ohio\\''
    """
    for column in list(tree.find_all(exp.Column)):
        name = column.this
        if name.args.get("quoted") and not column.table and name.name.lower() not in columns:
            column.replace(exp.Literal.string(name.name))
    return tree


def without_aliases(tree: exp.Query) -> exp.Query:
    """Tables by their own names, and columns alone where there is one table."""
    for select in list(tree.find_all(exp.Select)):
        source = select.args.get("from_")
        tables = [source.this, *(join.this for join in select.args.get("joins") or ())] if source else []
        names = [table.name.lower() for table in tables if isinstance(table, exp.Table)]
        if not names or len(set(names)) < len(tables):
            continue
        aliases = {table.alias_or_name.lower() for table in tables}
        referring = [column for column in select.find_all(exp.Column) if column.table.lower() in aliases]
        if any(column.find_ancestor(exp.Select) is not select for column in referring):
            continue  # an inner query speaks of this one's rows
        of = {table.alias_or_name.lower(): table.name for table in tables}
        for column in referring:
            own = of[column.table.lower()]
            column.set("table", exp.to_identifier(own) if len(tables) > 1 else None)
        for table in tables:
            table.set("alias", None)
    return tree


def with_steps(tree: exp.Query) -> exp.Query:
    """What stands in brackets and speaks only of itself as a step of its own; equal ones are one step."""
    clause = tree.args.get("with_")
    given = list(clause.expressions) if clause else []
    taken = {node.name.lower() for node in tree.find_all(exp.Identifier)}
    names = (name for number in range(1, 1000) if (name := f"t{number}") not in taken)
    steps: dict[str, str] = {}  # what each does, and its name
    listed: list[exp.CTE] = []
    for body in [*(cte.this for cte in given), tree]:
        for query in reversed([*body.find_all(exp.Subquery)]):
            if query.find_ancestor(exp.With) is not None and body is tree:
                continue  # it belongs to a step that has been looked at
            if not _stands_alone(query):
                continue
            text = query.this.sql("sqlite")
            if text not in steps:
                steps[text] = next(names)
                listed.append(exp.CTE(this=query.this.copy(), alias=exp.TableAlias(this=steps[text])))
            query.replace(_reference(query, steps[text]))
        if body is not tree:
            listed.append(body.parent)
    if listed:
        recursive = bool(clause and clause.recursive)
        tree.set("with_", exp.With(expressions=listed, recursive=recursive))
    return tree


def _stands_alone(query: exp.Subquery) -> bool:
    if not isinstance(query.this, exp.Query) or isinstance(query.parent, exp.SetOperation):
        return False
    if query.find(exp.With) is not None:
        return False
    own = {source.alias_or_name.lower() for source in query.this.find_all(exp.Table, exp.Subquery)}
    return all(column.table.lower() in {*own, ""} for column in query.this.find_all(exp.Column))


def _reference(query: exp.Subquery, name: str) -> exp.Expression:
    """What stands for a query that is a step: its table, or all of its rows."""
    table = exp.to_table(name)
    if isinstance(query.parent, exp.From | exp.Join):
        alias = query.args.get("alias")
        return exp.Table(this=exp.to_identifier(name), alias=alias.copy() if alias else None)
    return exp.Subquery(this=exp.select("*").from_(table))
