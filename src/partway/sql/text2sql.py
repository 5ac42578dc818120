"""Text-to-SQL data to problems: GeoQuery as text2sql-data has it, Spider and BIRD.

A reference is the query as steps, where that gives the same rows. A row whose query fails or gives no rows is
left out, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from partway.data.conversion import Conversion, Reject
from partway.errors import ProblemError, SolutionError
from partway.problem import Problem
from partway.solution import Solution
from partway.sql.databases import Database, database_of
from partway.sql.lifting import lifted
from partway.sql.sql import SQLLanguage
from partway.sql.workers import describe

Split = Literal["query", "question"]
Converted = Problem | Reject

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
    questions = list(_geoquery(source, split) if list(source.glob("geo*.json")) else _spider(source))
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
    for number, template in enumerate(json.loads(path.read_text(encoding="utf-8"))):
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
            for row in json.loads(path.read_text(encoding="utf-8")) if path.exists() else ():
                question = " ".join(filter(None, [row["question"].strip(), row.get("evidence", "").strip()]))
                query, name = row.get("query") or row.get("SQL"), row["db_id"]
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
            reason = "the query fails" if itself.failure is None else f"the query: {itself.failure.kind}"
            converted.append(_reject(question, reason, itself.failure.message if itself.failure else ""))
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
    return {f"{length} steps": lengths.count(length) for length in dict.fromkeys(lengths)}
