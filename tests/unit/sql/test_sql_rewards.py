"""Trace credit for queries, as other trainers ask for it."""

import asyncio
import json
from types import SimpleNamespace

import pytest

pytest.importorskip("sqlglot", reason="SQL needs sqlglot: pip install partway[sql]")

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
