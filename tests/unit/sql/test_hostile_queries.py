"""Queries that try to write, to reach out, to fill memory or never to end: none succeeds, none hangs."""

import hashlib
import os
import resource
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("sqlglot", reason="SQL needs sqlglot: pip install partway[sql]")

from partway import Problem, trace
from partway.errors import ProblemError
from partway.sql import sql, workers
from partway.sql.databases import Database, database_of
from partway.sql.sql import SQLLanguage
from partway.sql.sqlite_worker import Allowance, StatementGuard

SMALL = Allowance(operations=200_000, cpu_seconds=0.2, rows=1_000, bytes=100_000)
ENDLESS = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r)"
A = "a" * 60_000
LONG = "printf('%.*c', 900000, 'a')"

WRITES = [
    "INSERT INTO t VALUES (9, 'x')",
    "REPLACE INTO t VALUES (1, 'x')",
    "UPDATE t SET a = 0",
    "DELETE FROM t",
    "DROP TABLE t",
    "DROP TABLE IF EXISTS t",
    "CREATE TABLE u (a)",
    "CREATE TABLE u AS SELECT * FROM t",
    "CREATE TEMP TABLE u AS SELECT * FROM t",
    "CREATE TEMP VIEW u AS SELECT 1",
    "CREATE VIEW u AS SELECT 1",
    "CREATE INDEX i ON t (a)",
    "CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM t; END",
    "CREATE VIRTUAL TABLE v USING fts5(x)",
    "CREATE VIRTUAL TABLE v USING rtree(a, b, c)",
    "ALTER TABLE t RENAME TO u",
    "ALTER TABLE t ADD COLUMN c",
    "ALTER TABLE t DROP COLUMN a",
    "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x, x",
    "WITH x AS (SELECT 1) UPDATE t SET a = 0",
    "WITH x AS (SELECT 1) DELETE FROM t",
    "INSERT INTO t VALUES (7, 'y') RETURNING a",
    "DELETE FROM t RETURNING a",
    "INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 1, 'x')",
    "UPDATE sqlite_master SET sql = ''",
    "DELETE FROM sqlite_sequence",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT s",
    "RELEASE s",
    "END",
    "VACUUM",
    "REINDEX",
    "ANALYZE",
    "SELECT 1; DROP TABLE t",
    "SELECT 1; SELECT 2",
    "UPDATE sqlite_schema SET sql = 'x'",
    "INSERT INTO sqlite_temp_master VALUES (1)",
    "WITH a AS (DELETE FROM t RETURNING a) SELECT * FROM a",
    "SELECT * FROM (INSERT INTO t VALUES (99, 'x') RETURNING a)",
    "SELECT 1 /* ; */; DELETE FROM t -- */",
    "SELECT 1 -- \nFROM t; DROP TABLE t",
    "/* */ DELETE FROM t /* */",
    "SELECT '\0'; DROP TABLE t",
    "SAVEPOINT s; RELEASE s; SELECT 1",
]
REACHES = [
    "ATTACH '/tmp/partway_hostile.db' AS x",
    "ATTACH ':memory:' AS x",
    "DETACH main",
    "VACUUM INTO '/tmp/partway_hostile.db'",
    "PRAGMA user_version = 7",
    "PRAGMA writable_schema = ON",
    "PRAGMA journal_mode = WAL",
    "PRAGMA query_only = OFF",
    "PRAGMA temp_store_directory = '/tmp'",
    "PRAGMA database_list",
    "PRAGMA hard_heap_limit = 0",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_table_info('t')",
    "SELECT * FROM pragma_function_list",
    "SELECT load_extension('libc.so.6')",
    "SELECT load_extension('x', 'y')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('/tmp/partway_hostile', 'x')",
    "SELECT edit('x')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT fts3_tokenizer('simple', x'00')",
    "SELECT random()",
    "SELECT RANDOMBLOB(100000000)",
    "SELECT hex(randomblob(16))",
    "SELECT total_changes()",
    "SELECT CHANGES()",
    "SELECT * FROM x.t",
    "SELECT * FROM fsdir('/')",
    "SELECT * FROM sqlite_dbpage",
    "EXPLAIN DELETE FROM t",
    "VACUUM main INTO '/tmp/partway_hostile2.db'",
    "SELECT * FROM pragma_table_xinfo('t'), pragma_index_list('t')",
    "SELECT * FROM pragma_journal_mode('wal')",
    "SELECT * FROM temp.pragma_user_version",
    "SELECT * FROM generate_series(1, 1000000000)",
    "SELECT * FROM dbstat",
    "SELECT * FROM sqlite_stmt",
    "SELECT * FROM bytecode('SELECT 1')",
    "SELECT * FROM sqlite_dbpage WHERE pgno = 1",
    "SELECT * FROM csv('/etc/passwd')",
    "SELECT * FROM zipfile('/tmp/x.zip')",
    "SELECT * FROM fts3tokenize('simple', 'a b')",
    "SELECT * FROM fts5vocab",
    "SELECT eval('DROP TABLE t')",
    "SELECT optimize(t), matchinfo(t), snippet(t) FROM t",
    "SELECT a FROM t ORDER BY RANDOM() LIMIT 1",
    "SELECT ?1, :a, @b, $c",
    "WITH x AS (SELECT 1) SELECT * FROM temp.x",
    "SELECT * FROM t, LATERAL (SELECT readfile('/etc/passwd'))",
    f"{ENDLESS[:-1]} WHERE x < 9000), sqlite_master AS (SELECT MAX(x) FROM r) SELECT * FROM temp.r",
]
FILLS = [
    "SELECT zeroblob(1000000000)",
    "SELECT zeroblob(2147483647)",
    "SELECT hex(zeroblob(900000))",
    "SELECT quote(zeroblob(900000))",
    f"SELECT replace('{A}', 'a', '{A[:1000]}')",
    "SELECT printf('%2000000000d', 1)",
    "SELECT printf('%.2000000000f', 1.0)",
    "SELECT group_concat(printf('%1000d', x)) FROM (WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL "
    "SELECT x + 1 FROM r WHERE x < 5000) SELECT x FROM r)",
    "SELECT json_group_array(printf('%1000d', a.a)) FROM t a, t b, t c, t d, t e, t f, t g, t h, t i",
    f"{ENDLESS} SELECT * FROM r",
    f"{ENDLESS} SELECT group_concat(x) FROM r",
    f"{ENDLESS} SELECT x FROM r ORDER BY x DESC",
    f"{ENDLESS} SELECT DISTINCT x FROM r",
    f"{ENDLESS} SELECT a.x FROM r a, r b",
    "SELECT * FROM t a, t b, t c, t d, t e, t f, t g, t h, t i, t j",
    "SELECT a.b || b.b FROM t a, t b, t c, t d, t e, t f, t g, t h",
    "WITH w AS (SELECT printf('%900000d', 1) AS x) SELECT x || x FROM w",
    "WITH x AS (SELECT printf('%60000d', 1) AS b FROM t a, t b) SELECT * FROM x",
    "SELECT printf('%.*c', 2000000000, 'x')",
    "SELECT printf('%*.*f', 1000000, 1000000, 1e308)",
    f"SELECT sum(length(hex({LONG}))) FROM t",
    f"SELECT quote({LONG}) || quote({LONG})",
    "SELECT strftime('" + "%s" * 40_000 + "', 'now')",
    "SELECT zeroblob(-1), zeroblob(9223372036854775807)",
    "WITH RECURSIVE r(x, n) AS (SELECT 'ab', 0 UNION ALL SELECT replace(x, 'a', x), n + 1 FROM r "
    "WHERE n < 60) SELECT max(length(x)) FROM r",
    "WITH RECURSIVE r(x) AS (SELECT 'a' UNION ALL SELECT x || x FROM r) SELECT length(x) FROM r",
    f"WITH RECURSIVE r(x) AS (SELECT {LONG} UNION ALL SELECT x || '' FROM r) SELECT count(DISTINCT x) FROM r",
    f"{ENDLESS[:-1]} LIMIT 900) SELECT json_group_array({LONG}) FROM r",
    "WITH RECURSIVE r(x) AS (SELECT '[]' UNION ALL SELECT json_array(json(x), json(x)) FROM r) "
    "SELECT length(x) FROM r",
    "SELECT group_concat(a.b) OVER (ORDER BY a.a, b.a, c.a) FROM t a, t b, t c",
    "SELECT sum(a.a) OVER (ORDER BY a.a ROWS BETWEEN 900 PRECEDING AND 9 FOLLOWING) FROM t a, t b, t c, t d",
    "WITH RECURSIVE r(x, n) AS (SELECT '1', 0 UNION ALL SELECT '[' || x || ']', n + 1 FROM r WHERE n < 900) "
    "SELECT json_extract(x, '$[0]') FROM r",
    f"SELECT replace({LONG}, 'a', char(128512)), replace({LONG}, 'a', 'bc')",
    "WITH w0 AS (SELECT printf('%90d', a.a) AS x FROM t a, t b LIMIT 900)"
    + "".join(f", w{n} AS (SELECT * FROM w{n - 1})" for n in range(1, 90))
    + " SELECT * FROM w89",
]
NEVER_END = [
    f"{ENDLESS} SELECT COUNT(*) FROM r",
    f"{ENDLESS} SELECT MAX(x) FROM r",
    f"{ENDLESS}, s AS (SELECT COUNT(*) FROM r) SELECT 1",
    "WITH RECURSIVE r(x) AS (SELECT 1 UNION SELECT (x * 7 + 1) % 1000000007 FROM r) SELECT COUNT(*) FROM r",
    "WITH RECURSIVE r(x) AS (VALUES (1) UNION ALL SELECT x FROM r) SELECT SUM(x) FROM r",
    "SELECT COUNT(*) FROM t a, t b, t c, t d, t e, t f, t g, t h, t i, t j, t k, t l",
    "SELECT SUM(a.a * b.a) FROM t a, t b, t c, t d, t e, t f, t g, t h, t i, t j, t k",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM t a, t b, t c, t d, t e, t f, t g, t h, t i WHERE i.a < 0)",
    f"SELECT COUNT(*) FROM t a, t b, t c, t d, t e WHERE '{A}' LIKE '%{'a%' * 60}b'",
    f"SELECT '{A}' LIKE '{'%a' * 60}%b'",
    f"SELECT '{A}' GLOB '{'*a' * 60}*b'",
    f"SELECT instr('{A}', '{A[:30_000]}b')" + f" + instr('{A}', '{A[:29_000]}b')",
    f"SELECT {LONG} LIKE '%' || {LONG} || '%'",
    f"SELECT sum({LONG} LIKE '{'%a_' * 60}%b') FROM t a, t b",
    f"SELECT sum({LONG} GLOB '{'*a' * 90}*b') FROM t a, t b",
    f"SELECT sum(length(trim({LONG}, 'ab'))) FROM t a, t b, t c",
    f"SELECT count(*) FROM t a, t b, t c, t d WHERE replace({LONG}, 'aa', 'b') LIKE '%bb'",
    "SELECT count(*) FROM json_each('[" + "1," * 30_000 + "1]') a, json_each('[" + "1," * 20_000 + "1]') b",
    "SELECT count(*) FROM json_tree('" + "[" * 500 + "]" * 500 + "') a, t b, t c, t d, t e",
    "WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT (WITH RECURSIVE b(y) AS (SELECT 1 UNION ALL "
    "SELECT y + 1 FROM b) SELECT count(*) FROM b) FROM a) SELECT x FROM a",
    "WITH w0(x) AS (SELECT 1)"
    + "".join(f", w{n}(x) AS (SELECT a.x FROM w{n - 1} a, w{n - 1} b)" for n in range(1, 40))
    + " SELECT count(*) FROM w39",
    "SELECT ntile(1000000000) OVER (ORDER BY 1) FROM t a, t b, t c, t d",
    "SELECT count(*) FROM (SELECT DISTINCT a.b, b.b, c.b, d.b FROM t a, t b, t c, t d)",
    "SELECT count(*) FROM " + ", ".join(f"t s{n}" for n in range(40)) + " WHERE s0.a > s39.a",
    "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x FROM r) SELECT count(*) FROM r WHERE x > 1 LIMIT 5",
    "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r ORDER BY 1 DESC) SELECT max(x) FROM r",
]
NESTS = [
    "SELECT " + "(" * 90 + "1" + ")" * 90,
    "SELECT " + "(" * 4000 + "1" + ")" * 4000,
    "SELECT " + "-" * 3000 + "1",
    "SELECT " + " + ".join(["1"] * 3000),
    "SELECT " + "NOT " * 2000 + "1",
    "SELECT " + "abs(" * 300 + "1" + ")" * 300,
    "SELECT " + ", ".join(["1"] * 5000),
    " UNION ALL ".join(["SELECT 1"] * 700),
    "SELECT * FROM " + "(SELECT * FROM " * 80 + "t" + ")" * 80,
    "SELECT * FROM " + ", ".join(f"t AS t{n}" for n in range(80)),
    "WITH w0 AS (SELECT * FROM t)"
    + "".join(f", w{n} AS (SELECT * FROM w{n - 1})" for n in range(1, 300))
    + " SELECT 1",
    "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM a",
    "SELECT max(" + ", ".join(["1"] * 500) + ")",
    "SELECT CASE " + " ".join(["WHEN 0 THEN 1"] * 900) + " END",
    "SELECT 'unclosed",
    "SELECT \0",
    "SELECT '\ud800'",
    "SELECT x'",
    "\x00\x01\x02",
    "SELECT * FROM t WHERE a IN (" + ", ".join(["1"] * 6000) + ")",
    "SELECT json_extract('" + "[" * 5000 + "]" * 5000 + "', '$" + "[0]" * 3000 + "')",
    "WITH " + ", ".join(f"w{n}(x) AS (SELECT 1)" for n in range(5000)) + " SELECT * FROM w1",
    "SELECT * FROM t " + "NATURAL JOIN t " * 70,
    "SELECT * FROM t a " + " ".join(f"LEFT JOIN t b{n} ON b{n}.a > a.a" for n in range(60)),
    "SELECT a FROM t WHERE a IN " + "(SELECT a FROM t WHERE a IN " * 30 + "(1)" + ")" * 30,
    "SELECT * FROM t WHERE b = '\ud800' OR b = '\udfff'",
    "SELECT char(55296, 1114112, 0, -1), CAST(x'eda080' AS TEXT)",
    "SELECT '" + "\u00e9" * 190_000 + "'",
    "SELECT round(1e308, 2147483647), 1e308 * 10, pow(1e308, 1e308), -9223372036854775808 / -1",
    "SELECT sqlite_log(1, 'x'), fts5(zeroblob(8)), rtreenode(2, x'0001'), rtreecheck('t')",
    "EXPLAIN QUERY PLAN SELECT * FROM t",
    "SELECT " + "{'a': " * 1_500 + "1" + "}" * 1_500,
    "SELECT CAST(1 AS " + "STRUCT<a " * 200 + "INT" + ">" * 200 + ")",
    "SELECT count(*)" + " OVER ()" * 1_000,
    "SELECT 1" + " IS NOT NULL" * 800,
    "SELECT 1" + "=1" * 4_000,
    "SELECT " + ",".join(["(1)"] * 2_400),
    "SELECT " + "INTERVAL " * 1_000,
    "WITH a AS (SELECT 1),\n" * 300,
    "WITH a0 AS (SELECT 1)" + "".join(f"\n, a{n} AS (SELECT 1)" for n in range(300)) + "\nSELECT (((",
    "SELECT FROM WHERE JOIN UNION ON AS WITH CASE WHEN THEN END AND OR NOT IN IS LIKE " * 100,
    "SELECT {{ a }} FROM {% if %}",
]  # fmt: skip
HOSTILE = WRITES + REACHES + FILLS + NEVER_END + NESTS


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "t.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
        connection.execute("CREATE INDEX by_b ON t (b)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(n, f"row {n}") for n in range(30)])
    connection.close()
    return path


@pytest.fixture(scope="module", autouse=True)
def nothing_changed(database: Path):
    """Whatever the tests of this file do, the file and its folder stay as they are."""
    before, names = hashlib.sha256(database.read_bytes()).hexdigest(), os.listdir(database.parent)
    yield
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before
    assert os.listdir(database.parent) == names
    assert not list(Path("/tmp").glob("partway_hostile*"))


def asked(database: Database, text: str) -> workers.Answered:
    """What becomes of a text that is given to SQLite as it is, past the parser, and of the next query."""
    count = workers.Query(database, (("", "SELECT COUNT(*), MAX(a) FROM t"),))
    hostile = workers.Query(database, (("", text),))
    found, after = workers.run([hostile, count], allowance=SMALL)
    assert after.tables == ([[30, 29]],)  # the database is as it was, and the worker lives
    return found


def test_there_are_more_than_a_hundred():
    assert len(set(HOSTILE)) == len(HOSTILE) > 150


@pytest.mark.parametrize("text", WRITES + REACHES)
def test_nothing_is_written_and_nothing_outside_is_reached(database: Path, text: str):
    found = asked(database_of(str(database)), text)
    assert found.failure is not None
    assert not found.tables


@pytest.mark.parametrize("text", FILLS + NEVER_END)
def test_what_would_fill_memory_or_never_end_is_stopped(database: Path, text: str):
    found = asked(database_of(str(database)), text)
    assert found.failure is not None or len(str(found.tables)) < SMALL.bytes
    assert found.failure is None or found.failure.is_own  # by its own limits: nobody had to wait for its end


@pytest.mark.parametrize(
    "text", [f"{ENDLESS} SELECT COUNT(*) FROM r", "SELECT COUNT(*) FROM t a, t b, t c, t d, t e"]
)
def test_too_much_work_is_a_timeout_however_busy_the_machine_is(database: Path, text: str):
    assert asked(database_of(str(database)), text).failure.kind == "timeout"


@pytest.mark.parametrize("place", range(len(HOSTILE)))
def test_a_hostile_text_as_a_sample_is_a_failure_or_plain_rows(database: Path, place: int, monkeypatch):
    monkeypatch.setattr(workers, "USUAL", SMALL)
    language = SQLLanguage(str(database))
    for text in (HOSTILE[place], f"WITH w AS ({HOSTILE[place]}) SELECT 1"):
        found = trace(text, language, Problem("p", "?", 1))
        assert found.failure is not None or len(str(found.answer)) < SMALL.bytes


def test_steps_cannot_leave_their_brackets(database: Path):
    there = database_of(str(database))
    for text in (
        "x AS (SELECT 1) SELECT 1; DROP TABLE t; --",
        'x AS (SELECT 1) INSERT INTO t VALUES (99, "x") --',
    ):
        (found,) = workers.run([workers.Query(there, (("x", text), ("", "SELECT 1")))], allowance=SMALL)
        assert found.failure is not None
    assert asked(there, "SELECT COUNT(*) FROM t").tables == ([[30]],)


def test_memory_of_this_process_stays_flat(database: Path):
    there = database_of(str(database))
    large = workers.Query(there, (("", "SELECT printf('%90d', a.a) FROM t a, t b LIMIT 900"),))
    workers.run([large] * 20, allowance=SMALL)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(5):
        workers.run([large] * 20, allowance=SMALL)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kilobytes


def test_a_database_file_is_never_opened_by_this_process(database: Path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the trainer's process opens no database")

    monkeypatch.setattr(sqlite3, "connect", refuse)
    language = SQLLanguage(str(database))
    problem = Problem("p", "How many?", 30)
    assert language.is_correct(problem, trace("SELECT COUNT(*) FROM t", language, problem))
    assert "t(a integer, b text)" in language.question(problem)


def test_a_worker_that_is_killed_is_replaced(database: Path):
    there = database_of(str(database))
    asked(there, "SELECT 1")
    for worker in workers._SHARED.workers:
        os.kill(worker.process.pid, 9)
    assert asked(there, "SELECT 1").tables in (([[1]],), ())
    assert asked(there, "SELECT 1").tables == ([[1]],)


@pytest.mark.parametrize("ask", [lambda there: asked(there, "SELECT 1"), workers.describe])
def test_a_database_that_ends_its_workers_is_given_up(database: Path, monkeypatch, ask):
    there = database_of(str(database))
    tries = []

    def dies(worker: workers._Worker, database: Database) -> None:
        tries.append(database)
        raise EOFError("it ended")

    with monkeypatch.context() as patched:
        patched.setattr(workers._Worker, "load", dies)
        with pytest.raises(ProblemError, match="workers end while they load it"):
            ask(there)
    assert tries == [there] * 2
    assert asked(there, "SELECT 1").tables == ([[1]],)


def test_workers_that_hold_too_much_begin_anew_once_they_are_idle(tmp_path: Path, monkeypatch):
    """More databases than memory holds are queried in one call; who is at work is not sent away."""
    monkeypatch.setattr(workers, "MAX_LOADED", 1)
    slow = f"{ENDLESS[:-1]} WHERE x < 90000) SELECT COUNT(*) FROM r"
    scripts = [f"CREATE TABLE t (a); INSERT INTO t VALUES ({n})" for n in range(4)]
    asked_of = [Database(script, script=script) for script in scripts for _ in range(2)]
    steps = [(("", "SELECT a FROM t"),), (("s", f"s AS ({slow})"), ("", "SELECT a FROM t"))] * 4
    queries = [workers.Query(*one) for one in zip(asked_of, steps, strict=True)]
    found = workers.run(queries, allowance=Allowance())
    assert [one.tables[-1] for one in found] == [[[n // 2]] for n in range(8)]


def test_what_a_worker_holds_is_counted_and_bounded(monkeypatch):
    workers._SHARED.close()
    monkeypatch.setattr(workers, "MAX_DATABASES", 3)
    for n in range(12):
        database = Database(str(n), script=f"CREATE TABLE t (a); INSERT INTO t VALUES ({n})")
        for asked_of in (database, database.changed(1)):
            (found,) = workers.run([workers.Query(asked_of, (("", "SELECT a FROM t"),))])
            assert found.tables == ([[n]],)
            assert all(len(worker.loaded) <= 5 for worker in workers._SHARED.workers)
            assert all(worker.bytes >= 8_192 * len(worker.loaded) for worker in workers._SHARED.workers)


def test_while_a_step_becomes_a_table_nothing_but_that_is_written():
    guard = StatementGuard()
    guard.is_ours, guard.materialises = False, True
    allowed = {
        (action, place): guard.allows(action, "t", None, place, None) == sqlite3.SQLITE_OK
        for action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_CREATE_TEMP_TABLE, sqlite3.SQLITE_DELETE)
        for place in ("temp", "main")
    }
    assert [pair for pair, is_free in allowed.items() if is_free] == [
        (sqlite3.SQLITE_INSERT, "temp"),
        (sqlite3.SQLITE_CREATE_TEMP_TABLE, "temp"),
    ]
    guard.materialises = False
    assert guard.allows(sqlite3.SQLITE_INSERT, "t", None, "temp", None) == sqlite3.SQLITE_DENY


@pytest.mark.parametrize(
    ("text", "most"),
    [
        (lambda n: f"SELECT 'a' LIKE '{'a' * n}'", 200),
        (lambda n: "SELECT " + ", ".join(["1"] * n), 500),
        (lambda n: " UNION ALL ".join(["SELECT 1"] * n), 50),
        (lambda n: "SELECT " + " + ".join(["a"] * n) + " FROM t", 100),
        (lambda n: f"SELECT max({', '.join(['1'] * n)})", 50),
        (lambda n: f"SELECT length(zeroblob({n}))", 1_000_000),
    ],
)
def test_sqlite_itself_has_limits(database: Path, text, most: int):
    there = database_of(str(database))
    assert asked(there, text(most)).failure is None
    assert asked(there, text(most + 1)).failure is not None


def test_a_query_has_half_a_gigabyte(database: Path):
    dear = f"{ENDLESS[:-1]} WHERE x < 900) SELECT COUNT(DISTINCT {LONG} || x) FROM r"
    query = workers.Query(database_of(str(database)), (("", dear),))
    (found,) = workers.run([query], allowance=Allowance(operations=10**9, cpu_seconds=30))
    assert found.failure.kind == "memory"


def test_what_a_worker_says_is_read_as_a_stranger_s(database: Path):
    """Rows of more steps than there are, or cells that are no cells, are not taken."""
    there = database_of(str(database))
    query = workers.Query(there, (("", "SELECT 1"),))
    for said in (b'[[1]]\n[[2]]\n{"failure": null}\n', b"[[[1]]]\n", b"[1]\n", b'{"rows": 1}\n', b"[[1]\n"):
        sheet = SimpleNamespace(record=lambda said=said: said, throw_away=lambda: None)
        (found,) = workers._read(workers._Batch(there, [0], sheet), [query], None)
        assert (found.tables, found.failure.message) == ((), "the worker's reply was refused")
    sheet = SimpleNamespace(
        record=lambda: b'[[1, "a", null, 2.5]]\n{"failure": null}\n', throw_away=lambda: None
    )
    (found,) = workers._read(workers._Batch(there, [0], sheet), [query], None)
    assert found == workers.Answered(([[1, "a", None, 2.5]],))


def test_the_rows_of_all_steps_have_a_limit_too(database: Path):
    rows = "SELECT printf('%90d', a.a) AS x FROM t a, t b LIMIT 900"
    steps = (("s0", f"s0 AS ({rows})"), *((f"s{n}", f"s{n} AS (SELECT * FROM s0)") for n in range(1, 9)))
    query = workers.Query(database_of(str(database)), (*steps, ("", "SELECT 1")))
    (found,) = workers.run([query], allowance=replace(SMALL, all_bytes=300_000))
    assert (len(found.tables), found.failure.kind) == (3, "memory")
    (found,) = workers.run([query], allowance=SMALL)
    assert found.failure is None


def test_a_table_that_cannot_be_finished_is_a_timeout_like_any_other(database: Path):
    """SQLite takes back what it was interrupted in, and then there is nothing left to be rolled back."""
    there = database_of(str(database))
    dear = f"s AS ({ENDLESS[:-1]} WHERE x < 9000) SELECT MAX(x) FROM r)"
    steps = (("s", dear), ("u", "u AS (SELECT 1)"), ("", "SELECT * FROM u"))
    count = workers.Query(there, (("", "SELECT COUNT(*) FROM t"),))
    limits = Allowance(operations=270_000)  # enough for it once, not twice
    found, after = workers.run([workers.Query(there, steps), count], allowance=limits)
    assert (len(found.tables), found.failure.kind) == (1, "timeout")
    assert after.tables == ([[30]],)


def test_rows_that_are_remembered_count_with_their_texts(database: Path):
    query = workers.Query(database_of(str(database)), (("", "SELECT 1"),), "SELECT 1 -- " + "a" * 9_000)
    for rows in ([["a" * 400_000]], [["é" * 90_000, "b"]] * 2, [[10**300]] * 1_000):
        held = sum(sys.getsizeof(cell) for row in rows for cell in row)
        assert sql._bytes_of(query, workers.Answered((rows,))) > held + 9_000
    before = len(sql._known)
    sql._known.put(query, workers.Answered(([["a" * 5_000_000]],)))
    assert len(sql._known) == before  # it would push out too much else


def test_what_a_worker_could_not_judge_is_asked_again(database: Path, monkeypatch):
    lost = workers.Failure("error", "the worker is gone", 0, is_own=False)
    language, problem = SQLLanguage(str(database)), Problem("p", "?", 30)
    text = "SELECT COUNT(*) + 0 FROM t"
    with monkeypatch.context() as patched:
        patched.setattr(workers, "run", lambda queries, **_: [workers.Answered((), lost)] * len(queries))
        assert not trace(text, language, problem).has_answer

    def lacks_memory(*_: object) -> None:
        raise ProblemError("out of memory")

    with monkeypatch.context() as patched:
        patched.setattr(workers._Worker, "load", lacks_memory)
        assert trace(text, language, problem).failure.message == "out of memory"
    assert trace(text, language, problem).answer == [[30]]


def test_a_schema_is_read_though_its_worker_was_killed(database: Path):
    there = database_of(str(database))
    workers.describe(there)
    for worker in workers._SHARED.workers:
        os.kill(worker.process.pid, 9)
    assert [table.name for table in workers.describe(there)] == ["t"]
