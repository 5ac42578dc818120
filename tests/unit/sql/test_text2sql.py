"""GeoQuery, Spider and BIRD to problems."""

import json
import sqlite3
from pathlib import Path

import pytest

pytest.importorskip("sqlglot", reason="SQL needs sqlglot: pip install partway[sql]")

from partway.errors import ProblemError
from partway.sql.sql import SQLLanguage
from partway.sql.text2sql import convert_text2sql

GEOQUERY = Path(__file__).parents[4] / "shared" / "data" / "geoquery"


def make_database(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE singer (name TEXT, age INT); INSERT INTO singer VALUES ('Ann', 30), ('Bo', 52)"
        )
    connection.close()


def test_spider_s_layout_is_read_and_what_is_left_out_has_a_reason(tmp_path: Path):
    make_database(tmp_path / "database" / "concert" / "concert.sqlite")
    queries = {
        "Oldest?": "SELECT T1.name FROM singer AS T1 WHERE T1.age = (SELECT max(age) FROM singer)",
        "Anybody?": 'SELECT name FROM singer WHERE name = "Bo" OR name = "bo"',
        "Young?": "SELECT name FROM singer WHERE age < 5",
        "Old?": "SELECT nam FROM singer",
        "What?": "SELECT FROM WHERE",
    }
    rows = [{"db_id": "concert", "question": asked, "query": query} for asked, query in queries.items()]
    rows.append({"db_id": "nowhere", "question": "Where?", "query": "SELECT 1"})
    (tmp_path / "train_spider.json").write_text(json.dumps(rows[:2]))
    (tmp_path / "dev.json").write_text(json.dumps(rows[1:]))
    found = convert_text2sql(tmp_path)
    assert {name: len(problems) for name, problems in found.splits.items()} == {"train": 2, "dev": 1}
    oldest, anybody = found.splits["train"]
    assert oldest.reference.steps == (
        "WITH t1 AS (SELECT MAX(age) FROM singer)",
        "SELECT name FROM singer WHERE age = (SELECT * FROM t1)",
    )
    assert (oldest.answer, oldest.meta) == ([["Bo"]], {"db_id": "concert"})
    assert anybody.reference.text == "SELECT name FROM singer WHERE name = 'Bo' OR name = 'bo'"
    assert found.rejects_by_reason("dev") == {
        "the query gives no rows": 1,
        "the query fails": 1,
        "the query cannot be read": 1,
        "no database": 1,
    }
    assert "no such column: nam" in found.rejects[1].detail
    assert SQLLanguage(str(tmp_path / "database")).flaw(oldest) is None


def test_bird_s_layout_has_evidence_in_the_question(tmp_path: Path):
    make_database(tmp_path / "dev_databases" / "concert" / "concert.sqlite")
    row = {"question_id": 7, "db_id": "concert", "question": "Who is old?", "evidence": "old means age > 50"}
    row |= {"SQL": "SELECT name FROM singer WHERE age > 50", "difficulty": "simple"}
    (tmp_path / "dev.json").write_text(json.dumps([row]))
    ((problem,),) = convert_text2sql(tmp_path).splits.values()
    assert (problem.id, problem.question) == ("dev-7", "Who is old? old means age > 50")
    assert problem.meta == {"db_id": "concert", "difficulty": "simple"}


def test_where_steps_would_give_other_rows_a_query_stays_one_step(tmp_path: Path):
    """An inner query may speak of the rows around it without saying so."""
    path = tmp_path / "database" / "concert" / "concert.sqlite"
    make_database(path)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE ticket (price INT)")
        connection.executemany("INSERT INTO ticket VALUES (?)", [(40,), (50,)])
    connection.close()
    query = "SELECT name FROM singer WHERE 1 IN (SELECT 1 FROM ticket WHERE price < {})"
    rows = [{"db_id": "concert", "question": "Who?", "query": query.format(one)} for one in ("age", 45)]
    (tmp_path / "dev.json").write_text(json.dumps(rows))
    outer, alone = convert_text2sql(tmp_path).splits["dev"]
    assert (len(outer.reference), outer.answer) == (1, [["Bo"]])
    assert (len(alone.reference), alone.answer) == (2, [["Ann"], ["Bo"]])


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("train.json", '[{"question": ', "train.json:1: not JSON"),
        ("train.json", '{"question": "?"}', "expected a list of objects"),
        ("dev.json", '[{"question": "How many?", "query": "SELECT 1"}]', "as published .KeyError.'db_id'"),
        ("dev.json", '[{"question": 7, "query": "SELECT 1", "db_id": "x"}]', "as published .AttributeError"),
        ("geography.json", '[{"sentences": []}]', "as published .KeyError.'variables'"),
        ("else.json", "[]", "expected geography.json, or train.json and dev.json"),
    ],
)
def test_files_in_no_known_layout_are_a_user_s_mistake(tmp_path: Path, name, text, said):
    (tmp_path / name).write_text(text)
    make_database(tmp_path / "geography.sqlite")
    with pytest.raises(ProblemError, match=said):
        convert_text2sql(tmp_path)


def test_a_row_without_a_query_is_left_out_alone(tmp_path: Path):
    make_database(tmp_path / "database" / "concert" / "concert.sqlite")
    rows = [{"db_id": "concert", "question": "How many?"} | more for more in ({}, {"query": "SELECT 2"})]
    (tmp_path / "dev.json").write_text(json.dumps(rows))
    found = convert_text2sql(tmp_path)
    assert [problem.answer for problem in found.splits["dev"]] == [[[2]]]
    assert found.rejects_by_reason() == {"the query cannot be read": 1}


@pytest.mark.skipif(not GEOQUERY.exists(), reason="GeoQuery is not beside this checkout (../shared/data)")
@pytest.mark.slow
def test_geoquery_is_converted_with_its_rows_unchanged():
    found = convert_text2sql(GEOQUERY)
    assert {name: len(problems) for name, problems in found.splits.items()} == {
        "train": 512,
        "dev": 151,
        "test": 181,
    }
    assert found.rejects_by_reason() == {"the query gives no rows": 28, "the query fails": 5}
    problems = [problem for listed in found.splits.values() for problem in listed]
    assert sum(len(problem.reference) > 1 for problem in problems) >= 345
    language = SQLLanguage()
    traces = language.trace_all([(problem, problem.reference.text) for problem in problems])
    assert all(language.is_correct(*pair) for pair in zip(problems, traces, strict=True))
    assert all(trace.solution == problem.reference for problem, trace in zip(problems, traces, strict=True))
    # Each beginning gives the same rows when it is run whole.
    again = language.trace_all([(problem, problem.reference.text) for problem in problems], whole=True)
    assert [trace.states for trace in again] == [trace.states for trace in traces]
