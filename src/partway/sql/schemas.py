"""The schema of a database in a prompt: its statements, or a line for each table."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Literal

from partway.sql.databases import Database, TableInfo
from partway.sql.workers import describe

SchemaStyle = Literal["columns", "ddl", "none"]
MAX_VALUE = 30  # characters of a value


@lru_cache(maxsize=1 << 16)
def question_with_schema(
    question: str, database: Database, style: SchemaStyle, values: int, template: str, limit: int
) -> str:
    """The question as `template` puts it beside the schema."""
    schema = schema_of(database, style, values, limit)
    return template.replace("{question}", question).replace("{schema}", schema)


@lru_cache(maxsize=1 << 10)
def schema_of(database: Database, style: SchemaStyle, values: int, limit: int) -> str:
    """The tables of a database, as many as `limit` characters hold; a warning says which are left out."""
    tables = describe(database, max(values, 1))
    texts = [_ddl(table) if style == "ddl" else _line(table, values) for table in tables]
    kept, length = 0, 0
    while kept < len(texts) and length + len(texts[kept]) + 1 <= limit:
        length += len(texts[kept]) + 1
        kept += 1
    if kept < len(texts):
        left = ", ".join(table.name for table in tables[kept:])
        name = database.path or "a script"
        left = f"prompts do not show {left}"
        warnings.warn(
            f"the schema of {name} has {sum(map(len, texts)):,} characters, {limit:,} are shown "
            f"(schema_limit, or half of the model's context): {left}",
            stacklevel=2,
        )
    return "\n".join(texts[:kept])


def _ddl(table: TableInfo) -> str:
    return f"{' '.join(table.sql.split())};"


def _line(table: TableInfo, values: int) -> str:
    """A table as `state(state_name text, area double)`, with values as `text: 'ohio', 'texas'`."""
    shown = [f"{name} {kind.lower()}".strip() for name, kind in table.columns]
    if values:
        cut = [", ".join(repr(value)[:MAX_VALUE] for value in some[:values]) for some in table.values]
        shown = [f"{column}: {some}" if some else column for column, some in zip(shown, cut, strict=True)]
    return f"{table.name}({', '.join(shown)})"
