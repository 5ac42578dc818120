"""Trace credit for queries, as other trainers ask for it."""

import asyncio
import json
import sqlite3
from types import SimpleNamespace

import pytest

pytest.importorskip("sqlglot", reason="SQL needs sqlglot: pip install partway[sql]")

from partway.errors import ProblemError
from partway.rewards import compute_score, sql_trace_reward, trace_credit

DATABASE = "CREATE TABLE t (n TEXT, a INT); INSERT INTO t VALUES ('eve', 3), ('bob', 2)"
SOLUTION = "WITH m AS (SELECT MAX(a) FROM t) SELECT n FROM t WHERE a = (SELECT * FROM m)"
TEXTS = {
    "SELECT n FROM t ORDER BY a DESC LIMIT 1": 1.0,
    "So:\n```sql\nWITH top AS (SELECT a FROM t ORDER BY a DESC LIMIT 1)\nSELECT a FROM top\n```": 0.25,
    "SELECT n FROM nowhere": 0.0,
    "I do not know.": 0.0,
}


@pytest.mark.parametrize("answer", [[["eve"]], '[["eve"]]', "eve", json.dumps("eve")])
def test_trl_gets_the_share_of_the_reference_that_a_query_reaches(answer):
    count = len(TEXTS)
    found = sql_trace_reward(
        list(TEXTS), [answer] * count, [SOLUTION] * count, [DATABASE] * count, prompts=[]
    )
    assert found == list(TEXTS.values())


def test_chats_and_answers_without_a_reference_are_scored():
    chat = [{"role": "assistant", "content": next(iter(TEXTS))}]
    assert sql_trace_reward([chat], [[["eve"]]], database=[DATABASE]) == [1.0]


def test_the_order_of_rows_counts_where_the_reference_has_one():
    ordered = "SELECT n FROM t ORDER BY a"
    given = ([["bob"], ["eve"]],), (ordered,), (DATABASE,)
    assert sql_trace_reward(["SELECT n FROM t ORDER BY n"], *given) == [1.0]
    assert sql_trace_reward(["SELECT n FROM t ORDER BY n DESC"], *given) == [0.0]


def test_verl_and_verifiers_score_a_row_with_a_database_as_a_query():
    extra = {"solution": SOLUTION, "database": DATABASE}
    assert [compute_score("geo", text, [["eve"]], extra) for text in TEXTS] == list(TEXTS.values())
    task = SimpleNamespace(answer=[["eve"]], **extra)
    scores = [asyncio.run(trace_credit(task, SimpleNamespace(last_reply=text))) for text in TEXTS]
    assert scores == list(TEXTS.values())


def test_each_row_of_a_batch_is_scored_on_its_own_database(tmp_path):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'ann' AS n, 9 AS a")
    connection.close()
    databases = [DATABASE, str(path)] * 2
    texts = ["SELECT n FROM t WHERE a = 3", "SELECT n FROM t WHERE a = 9"] + [
        "SELECT n FROM t WHERE a = 3"
    ] * 2
    found = sql_trace_reward(texts, [[["eve"]], [["ann"]]] * 2, database=databases)
    assert found == [1.0, 1.0, 1.0, 0.0]


def test_without_answers_the_rows_of_the_solution_count():
    count = len(TEXTS)
    assert sql_trace_reward(list(TEXTS), None, [SOLUTION] * count, [DATABASE] * count) == list(TEXTS.values())
    broken = ["SELECT n FROM nowhere", "SELECT ((", None]
    assert sql_trace_reward(["SELECT 1"] * 3, solution=broken, database=[DATABASE] * 3) == [None] * 3
    assert sql_trace_reward(["SELECT 1"], [[[1]]], ["SELECT (("], [DATABASE]) == [1.0]  # an answer is enough


@pytest.mark.parametrize("columns", [{}, {"answer": [1]}, {"database": [DATABASE]}])
def test_columns_that_are_missing_are_named(columns):
    with pytest.raises(ProblemError, match="columns `database` and `answer` or `solution`"):
        sql_trace_reward(["SELECT 1"], **columns, prompts=["?"], trainer_state=None)


@pytest.mark.parametrize("database", [None, "nowhere", "nowhere/x.sqlite"])
def test_a_database_that_is_not_there_is_a_mistake_and_no_score_of_zero(database):
    with pytest.raises(ProblemError, match="database"):
        sql_trace_reward(["SELECT 1"], [1], database=[database])
