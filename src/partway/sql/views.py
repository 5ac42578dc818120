"""What is shown of queries: schemas in prompts, traces as tables of rows, execution accuracy, and chance."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, Literal

from partway.cli.options import counted
from partway.errors import clipped
from partway.language import Trace
from partway.problem import Problem
from partway.sql.databases import Database, TableInfo
from partway.sql.row_sets import Rows, text_of
from partway.sql.workers import describe

if TYPE_CHECKING:
    from partway.evaluation import Judged

SchemaStyle = Literal["columns", "ddl", "none"]
Prompt = Callable[[str], Sequence[int]]  # the tokens that a model reads of a text
MAX_VALUE = 30  # characters of a value in a prompt
MOST_ROWS = 10

_TEXT = re.compile(r"'((?:[^']|'')+)'")
_WORD = re.compile(r"[\w.]*\w")


@lru_cache(maxsize=1 << 10)
def schema_text(
    database: Database,
    style: SchemaStyle,
    values: int,
    limit: int,
    room: int = 0,
    prompt: Prompt | None = None,
) -> str:
    """The tables of a database, as many as `limit` characters and `room` tokens of `prompt` hold.

    A warning says how much is left out.
    """
    tables = describe(database, max(values, 1))
    texts = [_ddl(table) if style == "ddl" else _line(table, values) for table in tables]
    whole, kept = "\n".join(texts), len(texts)

    def is_long(text: str) -> bool:
        return len(text) > limit or (prompt is not None and len(prompt(text)) > room)

    while kept and is_long("\n".join(texts[:kept])):
        kept -= 1
    shown = "\n".join(texts[:kept])
    if kept < len(texts):
        reason = f"{len(whole):,} characters, and schema_limit is {limit:,}"
        tokens = "" if prompt is None else f", {len(prompt(shown)):,} tokens"
        if prompt is not None and len(whole) <= limit:
            reason = f"{len(prompt(whole)):,} tokens, and half of the model's context is {room:,}"
        warnings.warn(
            f"the schema of {database.path or 'a script'} has {reason}: prompts show {len(shown):,} "
            f"characters{tokens}, and not {', '.join(table.name for table in tables[kept:])}",
            stacklevel=2,
        )
    return shown


def _ddl(table: TableInfo) -> str:
    return f"{' '.join(table.sql.split())};"


def _line(table: TableInfo, values: int) -> str:
    """A table as `state(state_name text, area double)`, with values as `text: 'ohio', 'texas'`."""
    shown = [f"{name} {kind.lower()}".strip() for name, kind in table.columns]
    if values:
        cut = [", ".join(repr(value)[:MAX_VALUE] for value in some[:values]) for some in table.values]
        shown = [f"{column}: {some}" if some else column for column, some in zip(shown, cut, strict=True)]
    return f"{table.name}({', '.join(shown)})"


def rows_by_step(trace: Trace, against: Trace | None = None) -> Iterator[list[tuple[str, bool]]]:
    """For every executed step its rows, the first ten, and whether each is among those of the reference.

    Of the reference's steps that one is compared with that has most rows in common.
    """
    known = [_counted(table) for table in _tables(against)] if against is not None else []
    for table in _tables(trace):
        own = _counted(table)
        best = max(known, key=lambda other: (own & other).total() / (own | other).total(), default=Counter())
        left = Counter(best)
        shown = []
        for row in table[:MOST_ROWS]:
            text = text_of([row])
            shown.append((clipped(" | ".join(map(_cell, row))), left[text] > 0))
            left[text] -= 1
        others = len(table) - len(shown)
        yield (
            [*shown, (f"and {counted(others, 'more row')}", False)]
            if others
            else shown or [("no rows", False)]
        )


def _tables(trace: Trace) -> list[Rows]:
    return [value[0] for changes in trace.changes for value in changes.values() if value is not None]


def _counted(table: Rows) -> Counter[str]:
    return Counter(text_of([row]) for row in table) or Counter([""])


def _cell(value: object) -> str:
    return "NULL" if value is None else str(value)


def execution_accuracy(problem: Problem, samples: Sequence[Judged]) -> float:
    """A metric under the name it has in text-to-SQL: the share of samples that give the right rows."""
    drawn = sum(one.sample.count for one in samples)
    return sum(one.sample.count for one in samples if one.passed) / drawn


def words_of(text: str) -> str:
    """A text as its words, to be looked for among those of another."""
    return " ".join(_WORD.findall(text.lower()))


def with_values(problems: Sequence[Problem]) -> Callable[[str, Problem, Random], str]:
    """What puts values that a question says into a reference, where those of its own question stand.

    Values are the texts in quotes of all references.

    >>> from partway.solution import Solution
    >>> query = Solution(("SELECT r FROM t WHERE s = 'ohio' AND k = 'big'",))
    >>> ohio = Problem("o", "rivers in ohio", None, query)
    >>> york = Problem("y", "new york", None, Solution(("SELECT c FROM t WHERE s IN ('new york', 'york')",)))
    >>> with_values([ohio, york])("cities in New York?", ohio, Random(0))
    "SELECT r FROM t WHERE s = 'new york' AND k = 'big'"
    """
    texts = [problem.reference.text for problem in problems if problem.reference is not None]
    known = sorted({value for text in texts for value in _TEXT.findall(text)})

    def said(question: str) -> list[str]:
        asked = f" {words_of(question)} "
        found = [value for value in known if f" {words_of(value)} " in asked]
        return [one for one in found if not any(one != other and one in other for other in found)]

    def filled(question: str, problem: Problem, rng: Random) -> str:
        assert problem.reference is not None, "only a reference has places to fill"
        given = said(question)
        into = {value: rng.choice(given) for value in said(problem.question)} if given else {}
        return _TEXT.sub(lambda found: f"'{into.get(found[1], found[1])}'", problem.reference.text)

    return filled
