"""SQL as a language: states, answers, duplicates, luck, prompts."""

import random
import re
import sqlite3
import time
import warnings
from collections import Counter
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("sqlglot", reason="SQL needs sqlglot: pip install partway[sql]")

from partway import Problem, SolutionBuffer, Verdict, trace
from partway.beyond.luck import audit_together
from partway.buffer import Rules
from partway.errors import ConfigError
from partway.language.language import flaw_of
from partway.language.named import language_of, settings_of
from partway.models.engine import SamplingSettings
from partway.models.prompts import Asking
from partway.models.tiny import build_tiny_model
from partway.problems import load_problems, read_problems
from partway.sample import Request
from partway.sampling.local_engine import LocalEngine
from partway.solution import EMPTY
from partway.sql import sqlite_worker, workers
from partway.sql.queries import read
from partway.sql.row_sets import text_of
from partway.sql.sql import SQLLanguage
from runreports.trace_html import Card, cards_html

TABLES = """
CREATE TABLE state (name TEXT PRIMARY KEY, area REAL, people INT);
CREATE TABLE river (name TEXT, state TEXT);
INSERT INTO state VALUES ('ohio', 44.8, 11), ('texas', 268.6, 29), ('iowa', 56.3, 3), ('utah', 84.9, NULL);
INSERT INTO river VALUES ('red', 'texas'), ('ohio', 'ohio'), ('red', 'texas'), ('cedar', 'iowa');
"""
REFERENCE = (
    "WITH t1 AS (SELECT MAX(area) FROM state)\n"
    ", t2 AS (SELECT name FROM state WHERE area = (SELECT * FROM t1))\n"
    "SELECT name FROM river WHERE state IN (SELECT * FROM t2)"
)
SQL = SQLLanguage()


def problem(reference: str | None = REFERENCE, answer: object = None, context: object = TABLES) -> Problem:
    asked = Problem("p", "Which rivers are in the largest state?", answer, context=context)
    if reference is None:
        return asked
    found = trace(reference, SQL, asked)
    rows = found.answer if answer is None else answer
    return Problem("p", asked.question, rows, found.solution, context=context)


def verdict(text: str, of: Problem | None = None, language: SQLLanguage = SQL) -> Verdict:
    asked = of or problem()
    return SolutionBuffer.seeded(asked, language=language).consider(trace(text, language, asked))


def test_a_state_is_the_rows_that_a_step_yields():
    found = trace(REFERENCE, SQL, problem())
    assert found.states == ("268.6", "'texas'", "'red'; 'red'")
    assert found.answer == [["red"], ["red"]]
    assert [change["rows"] for change in found.changes] == [
        ([[268.6]],),
        ([["texas"]],),
        ([["red"], ["red"]],),
    ]


def test_right_beginnings_and_right_queries_are_kept_as_in_any_language():
    other = "WITH big AS (SELECT area FROM state ORDER BY area DESC LIMIT 1)"
    assert verdict(f"{other}\nSELECT name FROM river") is Verdict.NEW_PARTIALLY_CORRECT
    assert verdict("SELECT name FROM river WHERE state = 'texas'") is Verdict.NEW_FULLY_CORRECT
    assert verdict(REFERENCE.lower()) is Verdict.KNOWN_FULLY_CORRECT
    assert verdict("SELECT name FROM lake") is Verdict.NOT_EXECUTABLE
    assert verdict("SELECT name FROM river") is Verdict.INCORRECT


def test_a_late_error_keeps_the_credit_of_the_beginning():
    found = trace(f"{REFERENCE.splitlines()[0]}\n, t2 AS (SELECT depth FROM state)\nSELECT 1", SQL, problem())
    assert found.states == ("268.6",)
    assert (found.failure.kind, found.failure.step) == ("error", 1)
    assert "no such column: depth" in found.failure.message
    assert not found.has_answer


@pytest.mark.parametrize(
    "text",
    [
        "SELECT name, FROM state",
        "SELECT name FROM state LIMIT 2 ORDER BY name",
        "SELECT name FROM state OFFSET 1",
        "FROM state SELECT name",
        "SELECT name FROM state UNION DISTINCT SELECT name FROM river",
        "SELECT `nowhere` FROM state",
        "SELECT name FROM state JOIN river USING name",
        "SELECT name FROM state WHERE people <=> 11",
        "WITH t1 (SELECT 1) SELECT * FROM t1",
    ],
)
def test_what_sqlite_refuses_has_no_answer_though_sqlglot_understands_it(text):
    assert read(text).error is None
    found = trace(text, SQL, problem())
    assert found.failure.kind == "error"
    assert found.failure.message.startswith("as it was written: ")
    assert not found.has_answer
    assert len(found.states) == len(found.solution) - 1  # a right beginning keeps its credit


def test_the_answer_is_that_of_the_text_as_it_was_written():
    text = "SELECT TYPEOF(CAST('12' AS STRING))"  # to SQLite a number, to sqlglot a text
    found = trace(text, SQL, problem())
    assert found.answer == [["integer"]]
    assert not SQL.confirms(
        problem(), found
    )  # what would be kept is spelled otherwise, and is something else


@pytest.mark.parametrize(("end", "answer"), [(";", [[200]]), (" LIMIT 2 ORDER BY 1", None)])
def test_what_was_written_is_checked_after_a_costly_beginning_too(end, answer):
    costly = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 5000)"
    found = trace(
        f"{costly}, s AS (SELECT x FROM r WHERE x <= 200) SELECT MAX(x) FROM s{end}", SQL, problem()
    )
    assert (found.answer if found.has_answer else None) == answer


def test_a_step_without_rows_never_counts_as_known():
    reference = "WITH t1 AS (SELECT name FROM state WHERE area < 0)\nSELECT COUNT(*) FROM t1"
    assert trace(reference, SQL, problem()).states[0] == ""
    wrong = "WITH t1 AS (SELECT people FROM state WHERE people > 99)\nSELECT 7"
    assert verdict(wrong, problem(reference)) is Verdict.INCORRECT


def test_null_is_a_value_and_numbers_are_compared_as_everywhere():
    assert text_of([[None]]) != text_of([["None"]]) != text_of([[0]])
    assert text_of([[2]]) == text_of([[2.0]])
    assert text_of([[0.1 + 0.2]]) == text_of([[0.3]])
    assert verdict("SELECT NULL, 2.0", problem("SELECT NULL, 2")) is Verdict.NEW_FULLY_CORRECT


def test_an_answer_has_an_order_where_the_reference_has_one():
    ordered = problem("SELECT name FROM state ORDER BY name")
    assert verdict("SELECT name FROM state ORDER BY area", ordered) is Verdict.INCORRECT
    assert verdict("SELECT name FROM (SELECT * FROM state ORDER BY name)", ordered).is_new
    unordered = problem("SELECT name FROM state")
    assert verdict("SELECT name FROM state ORDER BY area", unordered) is Verdict.NEW_FULLY_CORRECT


def as_spider_counts(predicted: list[tuple], gold: list[tuple], ordered: bool) -> bool:
    """Spider's test suites: equal under some order of columns, as multisets or in order."""
    if len(predicted) != len(gold) or len(predicted[0]) != len(gold[0]):
        return False
    for order in permutations(range(len(gold[0]))):
        moved = [tuple(row[place] for place in order) for row in predicted]
        if moved == gold if ordered else Counter(moved) == Counter(gold):
            return True
    return False


def test_settings_give_the_execution_accuracy_of_spider_and_of_bird():
    rng = random.Random(0)
    spider, bird = SQLLanguage(column_order="any"), SQLLanguage(state="set")
    agreements = Counter()
    for _ in range(600):
        width, height = rng.randint(1, 3), rng.randint(1, 4)
        gold = [tuple(rng.choice([1, 2, None, "a"]) for _ in range(width)) for _ in range(height)]
        order = rng.sample(range(width), width)
        predicted = [tuple(row[place] for place in order) for row in rng.sample(gold, height)]
        if rng.random() < 0.4:
            predicted[0] = tuple(rng.choice([1, 2]) for _ in range(width))
        if rng.random() < 0.3:
            predicted.append(predicted[0])
        for ordered in (False, True):
            same = spider._text(predicted, ordered) == spider._text(gold, ordered)
            assert same == as_spider_counts(predicted, gold, ordered), (predicted, gold, ordered)
            agreements[same] += 1
        assert (bird._text(predicted, False) == bird._text(gold, False)) == (set(predicted) == set(gold))
    assert min(agreements.values()) > 100  # both outcomes are tried


def test_rows_as_sets_in_any_order_of_columns_are_equal_however_often_they_occur():
    often, once = [[1, 2], [1, 2], [3, 1]], [[2, 1], [1, 3]]
    assert text_of(often, as_set=True, column_order="any") == text_of(once, as_set=True, column_order="any")
    assert text_of(often, column_order="any") != text_of(once, column_order="any")


def test_no_table_is_compared_for_ever():
    """Columns that are equal row by row need no order; of others that hold the same not all are tried."""
    mixed = [[(place + row) % 9 for place in range(9)] for row in range(9)]
    for rows in ([[1] * 9], [[n % 7] * 5 for n in range(9_000)], mixed):
        before = time.process_time()
        for _ in range(20):
            text_of(rows, column_order="any")
        assert time.process_time() - before < 4
    assert text_of([[1, 2, 1, 2], [2, 1, 2, 3]], column_order="any") == text_of(
        [[3, 1, 2, 2], [2, 2, 1, 1]], column_order="any"
    )


def test_many_columns_that_hold_the_same_are_compared_as_they_stand():
    wide = [[n % 2 for _ in range(30)] for n in range(4)]
    assert text_of(wide, column_order="any") == text_of(wide[::-1], column_order="any")
    spider = SQLLanguage(column_order="any")
    query = f"SELECT {', '.join(['1'] * 400)} FROM state"
    assert trace(query, spider, problem()).states[0].startswith("4 rows")


def test_a_question_with_answer_rows_only_is_solved_by_the_first_query_that_gives_them():
    asked = problem(None, [["red"], ["red"]])
    assert verdict(REFERENCE, asked) is Verdict.NEW_FULLY_CORRECT
    assert verdict("SELECT DISTINCT name FROM river WHERE state = 'texas'", asked) is Verdict.INCORRECT
    for plain in (3, [3], [[3]]):
        assert verdict("SELECT MIN(people) FROM state", problem(None, plain)) is Verdict.NEW_FULLY_CORRECT


def test_what_is_kept_gives_the_same_rows_when_run_whole(monkeypatch):
    asked = problem()
    found = trace(REFERENCE, SQL, asked)
    assert SQL.confirms(asked, found)
    assert not SQL.confirms(asked, found._replace(states=("1", *found.states[1:])))
    assert not SQL.confirms(asked, found._replace(outcome=([["blue"]],)))
    runs = []
    really = workers.run
    monkeypatch.setattr(
        workers, "run", lambda asked, **how: runs.append((len(asked), how)) or really(asked, **how)
    )
    assert SQL.confirms(asked, trace(REFERENCE, SQL, asked))
    assert runs == [(0, {"whole": False}), (1, {"whole": True})]  # what is known is run again


def test_luck_shows_on_changed_databases():
    asked = problem()
    lucky = "SELECT name FROM river WHERE name = 'red'"
    rules = Rules.of({"spurious": "drop"})
    buffer = SolutionBuffer.seeded(asked, rules, language=SQL)
    assert buffer.consider(trace(lucky, SQL, asked)) is Verdict.SPURIOUS
    joined = "SELECT r.name FROM river AS r, state AS s WHERE r.state = s.name AND s.area = "
    right = f"{joined}(SELECT MAX(area) FROM state)"
    assert buffer.consider(trace(right, SQL, asked)) is Verdict.NEW_FULLY_CORRECT


def test_without_a_reference_a_text_from_nowhere_is_doubted():
    asked = problem(None, [["red"], ["red"]])
    lucky, right = "SELECT name FROM river WHERE state = 'Texas' OR state = 'texas'", REFERENCE
    buffer = SolutionBuffer.seeded(asked, Rules.of({"spurious": "drop"}), language=SQL)
    assert buffer.consider(trace(lucky, SQL, asked)) is Verdict.SPURIOUS
    assert buffer.consider(trace(right, SQL, asked)) is Verdict.NEW_FULLY_CORRECT
    said = Problem("p", "Which rivers are in Texas?", asked.answer, context=TABLES)
    buffer = SolutionBuffer.seeded(said, Rules.of({"spurious": "drop"}), language=SQL)
    assert buffer.consider(trace(lucky, SQL, said)) is Verdict.NEW_FULLY_CORRECT
    audits = audit_together(asked, [SQL.parse(lucky), SQL.parse(right)], SQL)
    assert [one.verdict for one in audits.values()] == ["spurious", "undecided"]
    assert "Texas, texas stands nowhere in the question" in audits[SQL.parse(lucky)].reason


@pytest.mark.parametrize(
    "query",
    [
        "SELECT name FROM state WHERE people > 750 LIMIT 1",
        "SELECT STRFTIME('%Y', born), GROUP_CONCAT(name, ' and ') FROM state",
        "SELECT CASE WHEN area > 9 THEN 'large' ELSE 'small' END FROM state WHERE name <> ''",
        "SELECT name FROM state WHERE name LIKE '%Ohio%' OR name = 'st. louis'",
    ],
)
def test_numbers_formats_and_what_the_question_says_are_not_from_nowhere(query):
    assert SQL.strange_literals(SQL.parse(query), "Is St. Louis in ohio?") == ()


def test_changed_databases_are_the_same_for_the_same_seed_and_keep_the_columns_values():
    first, again = (
        [trace("SELECT * FROM state", SQL, one).answer for one in SQL.variations(problem())] for _ in "ab"
    )
    assert first == again
    assert len(first) == 4
    original = trace("SELECT * FROM state", SQL, problem()).answer
    assert any(rows != original for rows in first)
    for rows in first:
        for column, values in zip(zip(*rows, strict=True), zip(*original, strict=True), strict=True):
            assert set(column) <= set(values)


def changed(script: str, text: str) -> list[object]:
    asked = problem(None, 1, script)
    return [trace(text, SQL, one).answer for one in SQL.variations(asked)]


def test_columns_that_are_computed_and_tables_that_are_virtual_do_not_hinder_changes(tmp_path: Path):
    made = "CREATE TABLE t (b INT AS (a * 2), a INT); INSERT INTO t (a) VALUES (1), (2), (3), (4), (5)"
    rows = changed(made, "SELECT * FROM t")
    assert any(one != [[2 * n, n] for n in range(1, 6)] for one in rows)
    assert all(twice == 2 * once for one in rows for twice, once in one)
    path = tmp_path / "virtual.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE VIRTUAL TABLE place USING rtree(id, low, high)")
        connection.execute("INSERT INTO place VALUES (1, 2, 3)")
        connection.executescript(TABLES)
    connection.close()
    assert len(set(map(str, changed(str(path), "SELECT * FROM state")))) > 1


def test_keys_stay_and_a_single_row_stays_and_triggers_do_nothing():
    store = sqlite_worker.Store()
    made = "CREATE TABLE t (id INTEGER PRIMARY KEY, n INT); CREATE TABLE one (a); CREATE TABLE log (a)"
    rows = (
        f"INSERT INTO t VALUES {', '.join(f'({n}, {n})' for n in range(1_000))}; INSERT INTO one VALUES (5)"
    )
    fires = "CREATE TRIGGER d AFTER DELETE ON t BEGIN INSERT INTO log VALUES (old.id); END"
    store.load("whole", b"", f"{made}; {rows}; {fires}")
    for seed in range(1, 6):
        store.change(f"changed {seed}", "whole", seed)
        connection, _ = store.open[f"changed {seed}"]
        ((count, moved),) = connection.execute("SELECT COUNT(*), SUM(id <> n) FROM t")
        assert 650 < count < 750  # changed keys would be dropped where they are taken
        assert 150 < moved < 270
        assert connection.execute("SELECT * FROM one").fetchall() == [(5,)]
        assert connection.execute("SELECT * FROM log").fetchall() == []


def test_what_describing_a_database_takes_is_no_query_s(monkeypatch):
    store = sqlite_worker.Store()
    counted = (
        "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 5000) SELECT x, 1 FROM r"
    )
    store.load("many", b"", f"CREATE TABLE t (x INT, y INT); INSERT INTO t {counted}")
    monkeypatch.setattr(sqlite_worker, "Allowance", lambda: SimpleNamespace(operations=2_000))
    (found,) = store.describe("many", 2)
    assert (found["columns"], found["values"]) == ([["x", "INT"], ["y", "INT"]], [[1, 2], [1]])


def test_a_large_table_is_changed_in_part(monkeypatch):
    monkeypatch.setattr(sqlite_worker, "CHANGED_ROWS", 100)
    store = sqlite_worker.Store()
    counted = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 9000) SELECT x FROM r"
    store.load("many", b"", f"CREATE TABLE t AS {counted}")
    store.open["many"][1].left = 0  # what reading it all takes does not count
    store.change("other", "many", 1)
    connection, guard = store.open["other"]
    ((count, least, most),) = connection.execute("SELECT COUNT(*), MIN(x), MAX(x) FROM t")
    assert guard.left > 0
    assert 40 < count < 110
    assert least < 1_000 < 8_000 < most


@pytest.mark.parametrize(
    ("context", "said"),
    [
        (
            "CREATE SCHEMA s; CREATE TABLE t (a)",
            "the database 'CREATE SCHEMA s.* cannot be used: near .SCHEMA",
        ),
        ("CREATE TABLE t (a); INSERT INTO t VALUES ('\0')", "cannot be used: embedded null character"),
        ("CREATE TABLE t (a); INSERT INTO t VALUES ('\ud800')", "cannot be used: .*surrogates not allowed"),
        ("a" * 5_000, "there is no database 'aaa"),
    ],
)
def test_a_database_that_cannot_be_made_is_a_bad_row_beside_good_ones(context, said):
    rows = [
        {"question": "How many?", "context": script, "solution": "SELECT COUNT(*) FROM state"} | answer
        for script in (TABLES, context)
        for answer in ({}, {"answer": [[4]]})
    ]
    checked = read_problems([*rows, {"question": "How?", "context": context, "answer": [[4]]}], language=SQL)
    assert [one.answer for one in checked.problems] == [[[4]]] * 2
    assert {bad.line for bad in checked.bad_rows} == {3, 4, 5}
    assert all(re.search(said, bad.reason) or "UTF-8" in bad.reason for bad in checked.bad_rows)


def test_databases_are_files_scripts_and_names_in_a_folder(tmp_path: Path):
    for path in (tmp_path / "geo.sqlite", tmp_path / "geo" / "geo.sqlite"):
        path.parent.mkdir(exist_ok=True)
        with sqlite3.connect(path) as connection:
            connection.executescript(TABLES)
        connection.close()
    count = "SELECT COUNT(*) FROM state"
    for language, context in [
        (SQL, str(tmp_path / "geo.sqlite")),
        (SQLLanguage(str(tmp_path)), "geo"),
        (SQLLanguage(str(tmp_path / "geo.sqlite")), None),
        (SQLLanguage(str(tmp_path / "geo")), "elsewhere/geo.sqlite"),
    ]:
        assert trace(count, language, problem(None, 4, context)).answer == [[4]]


def test_a_file_with_a_log_beside_it_and_one_that_changes_are_read(tmp_path: Path):
    path = tmp_path / "live.sqlite"
    asked = problem(None, 1, str(path))
    for count in (1, 2):
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE IF NOT EXISTS t (a)")
            connection.executemany("INSERT INTO t VALUES (?)", [("a" * 5_000,)] * 2)
        connection.close()
        assert path.read_bytes()[18:20] == sqlite_worker.WAL
        assert trace("SELECT COUNT(*) FROM t", SQL, asked).answer == [[2 * count]]


def test_a_dump_makes_a_database_and_what_reaches_out_of_it_does_not():
    connection = sqlite3.connect(":memory:")
    connection.executescript(TABLES)
    dump = "PRAGMA foreign_keys=ON;\n" + "\n".join(connection.iterdump())
    connection.close()
    assert trace("SELECT COUNT(*) FROM state", SQL, problem(None, 4, dump)).answer == [[4]]
    for reaches in ("ATTACH ':memory:' AS x", "ATTACH '/tmp/partway_hostile.db' AS x", "DETACH main"):
        assert "not authorized" in SQL.flaw(problem(None, 4, f"{TABLES}; {reaches}"))
    ordered = f"PRAGMA reverse_unordered_selects = ON; {TABLES}"
    assert trace("SELECT area FROM state LIMIT 1", SQL, problem(None, 4, ordered)).answer == [[44.8]]


@pytest.mark.parametrize(
    ("context", "said"),
    [(None, "needs a database"), ("nowhere", "no database 'nowhere'"), (7, "expected a database")],
)
def test_a_problem_without_a_database_says_what_is_missing(context, said):
    asked = problem(None, 4, context)
    assert said in SQL.flaw(asked)
    assert said in flaw_of(asked, trace("SELECT 1", SQL, asked), SQL)


def test_a_file_that_is_not_a_database_is_a_user_s_mistake(tmp_path: Path):
    (tmp_path / "x.sqlite").write_text("not one")
    assert "not a SQLite database" in SQL.flaw(problem(None, 4, str(tmp_path / "x.sqlite")))


def test_prompts_show_the_schema_as_settings_want_it():
    asked = problem()
    lines = "state(name text, area real, people int)\nriver(name text, state text)"
    assert SQL.question(asked) == f"{lines}\n\n{asked.question}"
    assert "name text: 'ohio', 'texas', area real:" in SQLLanguage(schema_values=2).question(asked)
    assert "CREATE TABLE river (name TEXT, state TEXT);" in SQLLanguage(schema="ddl").question(asked)
    assert SQLLanguage(schema="none").question(asked) == asked.question
    template = SQLLanguage(schema_template="{question}\nTables:\n{schema}")
    assert template.question(asked) == f"{asked.question}\nTables:\n{lines}"


def test_a_long_schema_is_cut_with_a_warning_that_names_what_is_left_out():
    with pytest.warns(UserWarning, match="schema_limit is 50: prompts show 39 characters, and not river"):
        assert "river(" not in SQLLanguage(schema_limit=50).question(problem())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SQLLanguage(schema_limit=90).question(problem())


def test_a_schema_takes_half_of_the_models_context_at_most():
    tables = "".join(f"CREATE TABLE wide{n} (first_column TEXT, second_column TEXT);\n" for n in range(60))
    asked = Problem("p", "Which?", [[1]], context=tables)
    small = build_tiny_model([asked], context_length=512, layers=1, asking=Asking(language=SQL))
    room = SQL.fitted(512, small.codec.prompt)
    with pytest.warns(UserWarning, match="half of the model's context is 256: .*and not .*, wide59") as told:
        shown = room.question(asked).removesuffix("\n\nWhich?")
    assert f"{len(small.codec.prompt(shown))} tokens, and not" in str(told[0].message)
    one_more = SQL.question(asked).split("\n")[len(shown.split("\n"))]
    assert len(small.codec.prompt(shown)) <= 256 < len(small.codec.prompt(f"{shown}\n{one_more}"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ((drawn,),) = LocalEngine(small, language=SQL).complete(
            [Request(asked, EMPTY, 1)], SamplingSettings(max_completion_length=1), 0
        )
    assert drawn.count == 1
    assert "wide59(" in SQL.question(asked)  # all of it, for a model that reads more
    assert "wide59(" in SQL.fitted(1 << 20, small.codec.prompt).question(asked)
    assert room == SQL, "how much a model reads is not a setting"


# Queries of our own, and what the two evaluations say by their definitions: Spider's test suites compare
# multisets of rows in any order of columns, with an order where there is ORDER BY (test-suite-sql-eval,
# exec_eval.py, result_eq); BIRD compares sets of rows (DAMO-ConvAI, bird/llm/src/evaluation.py).
EXECUTION_ACCURACY = [
    ("SELECT name FROM state", "SELECT name FROM state ORDER BY area", True, True),
    ("SELECT name FROM state ORDER BY name", "SELECT name FROM state ORDER BY area", False, True),
    ("SELECT name FROM state ORDER BY area", "SELECT name FROM state WHERE 1 ORDER BY area", True, True),
    ("SELECT name FROM river", "SELECT DISTINCT name FROM river", False, True),
    ("SELECT name, area FROM state", "SELECT area, name FROM state", True, False),
    ("SELECT name, area FROM state", "SELECT name AS n, area AS a FROM state", True, True),
    ("SELECT name, area FROM state", "SELECT name FROM state", False, False),
    ("SELECT COUNT(*) FROM state", "SELECT 4.0", True, True),
    ("SELECT COUNT(*) FROM state", "SELECT '4'", False, False),
    ("SELECT people FROM state WHERE name = 'utah'", "SELECT NULL", True, True),
    ("SELECT people FROM state WHERE name = 'utah'", "SELECT 0", False, False),
    ("SELECT name FROM state", "SELECT depth FROM state", False, False),
    ("SELECT MAX(area) FROM state", "SELECT area FROM state ORDER BY area DESC LIMIT 1", True, True),
    ("SELECT name, state FROM river", "SELECT state, name FROM river ORDER BY 1", True, False),
]


@pytest.mark.parametrize(("gold", "predicted", "by_spider", "by_bird"), EXECUTION_ACCURACY)
def test_queries_are_right_where_spider_and_bird_say_so(gold, predicted, by_spider, by_bird):
    asked = problem(gold)
    spider, bird = SQLLanguage(column_order="any"), SQLLanguage(state="set")
    for language, expected in ((spider, by_spider), (bird, by_bird)):
        assert language.is_correct(asked, trace(predicted, language, asked)) == expected
    connection = sqlite3.connect(":memory:")
    connection.executescript(TABLES)
    try:
        rows = [connection.execute(query).fetchall() for query in (predicted, gold)]
    except sqlite3.OperationalError:
        assert not by_spider | by_bird
        return
    finally:
        connection.close()
    assert as_spider_counts(*rows, ordered="order by" in gold.lower()) == by_spider
    assert (set(rows[0]) == set(rows[1])) == by_bird


def test_settings_are_checked_and_come_back():
    language = SQLLanguage(column_order="any", schema_values=2)
    assert language_of(settings_of(language)) == language
    assert settings_of(language)["language"] == "sql"
    with pytest.raises(ConfigError, match=r"expected \{schema\} in it"):
        SQLLanguage(schema_template="{question}")
    with pytest.raises(ConfigError, match="expected a dialect of sqlglot's; did you mean 'sqlite'"):
        SQLLanguage(dialect="sqlit")


def test_a_solution_ends_with_a_semicolon_at_the_end_of_a_line():
    assert SQL.end("SELECT a\nFROM t\n") is None
    assert SQL.end("SELECT a\nFROM t;\nmore") == len("SELECT a\nFROM t;\n")


def test_queries_may_take_json_apart():
    text = "SELECT j.value FROM state, JSON_EACH('[1, \"a\"]') AS j WHERE name = 'ohio'"
    assert trace(text, SQL, problem()).answer == [[1], ["a"]]


def test_rows_of_sql_create_context_are_problems():
    row = {
        "question": "How many?",
        "context": "CREATE TABLE head (age INT)",
        "answer": "SELECT COUNT(*) FROM head",
    }
    (found,) = load_problems([row], language=SQL, columns="solution=answer")
    assert (found.answer, found.reference.text) == ([[0]], row["answer"])


def test_rows_of_synthetic_text_to_sql_are_problems():
    row = {"sql_prompt": "How many?", "sql_context": TABLES, "sql": "select count(*) from state;"}
    columns = "question=sql_prompt,solution=sql,context=sql_context"
    (found,) = load_problems([row], language=SQL, columns=columns)
    assert found.answer == [[4]]
    assert found.reference.steps == ("SELECT COUNT(*) FROM state",)
    assert found.context == TABLES


def test_without_a_reference_luck_is_what_most_others_disagree_with_elsewhere():
    asked = problem(None, [["red"], ["red"]])
    joined = "SELECT r.name FROM river AS r JOIN state AS s ON r.state = s.name WHERE s.area = "
    right = [REFERENCE, f"{joined}(SELECT MAX(area) FROM state)"]
    lucky = "SELECT name FROM river WHERE name = 'red'"
    found = audit_together(asked, [SQL.parse(text) for text in (*right, lucky)], SQL)
    assert [one.verdict for one in found.values()] == ["confirmed", "confirmed", "spurious"]


def test_traces_are_shown_as_rows_cut_at_ten_with_those_that_match():
    many = (
        "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 14) SELECT x, NULL FROM r"
    )
    own, other = (trace(text, SQL, problem()) for text in (many, "SELECT 2, NULL UNION ALL SELECT 12, NULL"))
    (_, shown) = SQL.rows_by_step(own, other)
    assert shown[:3] == [("1 | NULL", False), ("2 | NULL", True), ("3 | NULL", False)]
    assert shown[10:] == [("and 4 more rows", False)]
    thrice = trace("SELECT 7 FROM state WHERE people > 0", SQL, problem())
    twice = trace("SELECT 7 FROM river WHERE name = 'red'", SQL, problem())
    assert list(SQL.rows_by_step(thrice, twice)) == [[("7", True), ("7", True), ("7", False)]]
    assert list(SQL.rows_by_step(trace("SELECT 1 WHERE 0", SQL, problem()), None)) == [[("no rows", False)]]
    assert "<br>" in cards_html([Card(own)], SQL)


def test_pages_mark_the_rows_that_the_first_solution_has_too():
    asked = problem()
    reference, other = (
        trace(text, SQL, asked) for text in (REFERENCE, "SELECT name FROM river WHERE state <> 'ohio'")
    )
    first, second = cards_html([Card(reference), Card(other)], SQL).split("</article>")[:2]
    assert "<b>=" not in first
    assert second.count("<b>= red</b>") == 2
    assert '<span class="values rows" dir="ltr"><b>= red</b><br><b>= red</b><br>cedar</span>' in second
    known = pytest.importorskip("runexplorer.problem_view").known_of
    buffer = SolutionBuffer.seeded(asked, language=SQL)
    (shown,) = known(asked, buffer).compared(other)["steps"]
    assert shown["values"] == [("red", True), ("red", True), ("cedar", False)]
    assert [row[1] for row in known(asked, buffer).compared(reference)["steps"][-1]["values"]] == [False] * 2
