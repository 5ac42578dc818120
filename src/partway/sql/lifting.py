"""A nested query as steps: what stands in brackets becomes a common table expression, innermost first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import sqlglot
from sqlglot import exp

from partway.errors import SolutionError
from partway.sql.queries import read

Columns = frozenset[str]


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
    try:
        tree = sqlglot.parse_one(text, dialect=dialect)
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise SolutionError(str(error).partition("\n")[0]) from None
    tree = with_texts(tree, columns)
    for change in changes:
        tree = change(tree)
    parsed = read(tree.sql(dialect), dialect)
    if parsed.error is not None:
        raise SolutionError(parsed.error)
    return parsed.solution.text


def with_texts(tree: exp.Query, columns: Columns) -> exp.Query:
    """Texts in double quotes, which SQLite takes for names as long as a column is called so, in single ones.

    >>> with_texts(sqlglot.parse_one('SELECT "a" FROM t WHERE a = "ohio"'), frozenset({"a"})).sql()
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
