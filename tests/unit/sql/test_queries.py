"""Text to steps and canonical forms."""

import time

import pytest

pytest.importorskip("sqlglot", reason="SQL needs sqlglot: pip install partway[sql]")

from partway.errors import SolutionError
from partway.solution import Solution
from partway.sql import queries
from partway.sql.queries import alpha_query, is_ordered, read, tree_of
from partway.sql.sql import SQLLanguage
from partway.sql.text2sql import lifted

STEPS = (
    "WITH t1 AS (SELECT MAX(area) FROM state)",
    ", t2 AS (SELECT name FROM state WHERE area = (SELECT * FROM t1))",
    "SELECT name FROM t2",
)


def steps(text: str) -> tuple[str, ...]:
    parsed = read(text)
    assert parsed.error is None, parsed.error
    return parsed.solution.steps


def test_steps_joined_by_newlines_are_the_query_again():
    assert steps("\n".join(STEPS)) == STEPS == steps(" ".join(STEPS))


@pytest.mark.parametrize(
    "spelling",
    [
        "select name from state s where (s.area > 3) and (s.name <> 'x')",
        "SELECT\n  Name\nFROM `State` AS s\nWHERE ((s.[area] > 3) AND s.\"NAME\" != 'x');",
        "SELECT (name) FROM state AS S WHERE S.area > 3 AND S.name <> 'x' -- the large ones",
        "SELECT `Name` FROM [state] AS `S` WHERE [S].area > 3 AND s.`name` <> 'x'",
        "(SELECT name FROM state AS s WHERE s.area > 3 AND s.name <> 'x')",
    ],
)
def test_spellings_of_one_query_are_one_solution(spelling):
    assert steps(spelling) == ("SELECT name FROM state AS s WHERE s.area > 3 AND s.name <> 'x'",)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT (a + b) * c FROM t",
        "SELECT a - (b - c) FROM t",
        "SELECT a FROM t WHERE (a = 1 OR b = 2) AND c = 3",
        "SELECT NOT (a AND b) FROM t",
        "SELECT (a = b) = c FROM t",
    ],
)
def test_brackets_that_mean_something_stay(text):
    assert steps(text) == (text,)


def test_a_quoted_name_that_may_be_a_text_is_left_as_it_is():
    assert steps('SELECT a FROM t WHERE b = "Ohio"') == ('SELECT a FROM t WHERE b = "Ohio"',)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("SELECT 1 FROM a CROSS JOIN b", "SELECT 1 FROM a, b"),
        ("SELECT 1 FROM a INNER JOIN b ON a.x = b.x", "SELECT 1 FROM a JOIN b ON a.x = b.x"),
        ("SELECT 1 FROM a NATURAL INNER JOIN b", "SELECT 1 FROM a NATURAL JOIN b"),
        ("SELECT 1 FROM a LEFT OUTER JOIN b USING (x)", "SELECT 1 FROM a LEFT JOIN b USING (x)"),
        ("SELECT 1 FROM a FULL OUTER JOIN b ON 1", "SELECT 1 FROM a FULL JOIN b ON 1"),
        ("SELECT a FROM t ORDER BY a ASC, b DESC", "SELECT a FROM t ORDER BY a, b DESC"),
        ("SELECT a FROM t ORDER BY a ASC NULLS LAST", "SELECT a FROM t ORDER BY a NULLS LAST"),
    ],
)
def test_words_that_say_what_holds_without_them_are_left_out(text, spelled):
    assert steps(text) == (spelled,) == steps(spelled)


def test_a_comma_between_tables_stays_a_comma():
    assert steps("SELECT 1 FROM a, b") == ("SELECT 1 FROM a, b",)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("\n".join(STEPS[:2]) + "\nSELECT name FROM t2 WHERE (", 2),
        ("\n".join(STEPS[:1]) + "\n, t2 AS (SELECT", 1),
        ("WITH t1 AS (\n  SELECT 1\n),\nt2 AS (\n  SELECT", 1),
        ("\n".join(STEPS) + "\nSELECT 1", 3),
        ("Let us see.", 0),
        ("WITH t1 AS (SELECT 1),\nt2 AS (SELECT * FROM (SELECT 2) AS t(x))\nSELECT 1", 1),  # no such alias
    ],
)
def test_a_text_that_does_not_parse_keeps_its_good_beginning(text, count):
    parsed = read(text)
    assert parsed.error is not None
    assert len(parsed.steps) == count


@pytest.mark.parametrize(
    "text", ["", "DROP TABLE t", "SELECT 1; SELECT 2", "PRAGMA x", "SELECT", "(" * 5000, "x" * 30_000]
)
def test_what_is_not_one_query_is_refused(text):
    with pytest.raises(SolutionError):
        SQLLanguage().parse(text)


def test_a_prefix_of_the_text_is_the_text_of_a_prefix():
    for length in (1, 2):
        parsed = read("\n".join(STEPS[:length]))
        assert parsed.solution.steps == STEPS[:length]


def test_renamed_steps_and_aliases_have_one_alpha_form_and_other_columns_have_not():
    first = Solution(steps("WITH a AS (SELECT MAX(n) AS m FROM t) SELECT x.n FROM t AS x, a WHERE x.n = m"))
    second = Solution(steps("WITH b AS (SELECT MAX(n) AS k FROM t) SELECT y.n FROM t AS y, b WHERE y.n = k"))
    assert first != second
    assert alpha_query(first) == alpha_query(second)
    area, people = (Solution(steps(f"SELECT MAX({c}) AS {c} FROM t")) for c in ("area", "people"))
    assert alpha_query(area) != alpha_query(people)


def test_an_answer_has_an_order_only_if_the_last_select_says_so():
    assert is_ordered(Solution(("SELECT a FROM t ORDER BY a",)))
    assert not is_ordered(Solution(("SELECT a FROM (SELECT a FROM t ORDER BY a LIMIT 3)",)))


def test_nested_queries_are_lifted_innermost_first_and_equal_ones_once():
    inner = "(SELECT MAX(T.area) FROM state AS T WHERE T.name IN (SELECT R.state FROM river AS R))"
    text = f"SELECT S.name FROM state AS S WHERE S.area = {inner} OR 2 * S.area < {inner}"
    assert next(lifted(text, frozenset())).split("\n") == [
        "WITH t1 AS (SELECT state FROM river)",
        ", t2 AS (SELECT MAX(area) FROM state WHERE name IN (SELECT * FROM t1))",
        "SELECT name FROM state WHERE area = (SELECT * FROM t2) OR 2 * area < (SELECT * FROM t2)",
    ]


def test_a_query_that_speaks_of_the_rows_around_it_is_not_lifted():
    text = "SELECT s.name FROM state AS s WHERE EXISTS(SELECT 1 FROM river AS r WHERE r.state = s.name)"
    inner = "SELECT s.name FROM state AS s WHERE s.area > (SELECT AVG(r.n) FROM r WHERE r.state = s.name)"
    assert not [one for query in (text, inner) for one in lifted(query, frozenset()) if "WITH" in one]


def test_steps_that_are_there_stay_and_what_is_nested_in_them_comes_before_them():
    step = "a AS (SELECT MAX(n) FROM t WHERE n IN (SELECT k FROM u))"
    text = f"WITH {step} SELECT n FROM t, (SELECT * FROM a) AS b"
    assert next(lifted(text, frozenset())).split("\n") == [
        "WITH t1 AS (SELECT k FROM u)",
        ", a AS (SELECT MAX(n) FROM t WHERE n IN (SELECT * FROM t1))",
        ", t2 AS (SELECT * FROM a)",
        "SELECT n FROM t, t2 AS b",
    ]


@pytest.mark.parametrize("word", ["Order", "group", "Index", "transaction", "values", "to"])
def test_names_that_need_their_quotes_keep_them(word):
    text = f'WITH a AS (SELECT t."{word}" FROM "{word}" AS t) SELECT `{word.upper()}`.* FROM `{word.upper()}`'
    quoted = f'"{word.lower()}"'
    spelled = (f"WITH a AS (SELECT t.{quoted} FROM {quoted} AS t)", f"SELECT {quoted}.* FROM {quoted}")
    assert steps(text) == spelled == steps("\n".join(spelled))


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("SELECT if(a, 1, 2), nvl(a, 1), len(b), string_agg(b, ',') FROM t",) * 2,
        ("SELECT greatest(a, b), max(a, b), substr(b, 2), strftime('%Y', d) FROM t",) * 2,
        ("SELECT count(DISTINCT a) FILTER(WHERE b > 1), group_concat(b, '; ') FROM t",) * 2,
        ("SELECT CAST(a AS DATE), CAST(b AS DECIMAL(5, 2))", "SELECT CAST(a AS NUMERIC), CAST(b AS NUMERIC)"),
        ("SELECT CAST(a AS INT), CAST(b AS VARCHAR(9))", "SELECT CAST(a AS INTEGER), CAST(b AS TEXT(9))"),
    ],
)
def test_functions_and_types_mean_what_sqlite_takes_them_for(text, spelled):
    assert [step.lower() for step in steps(text)] == [spelled.lower()]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a::INT FROM t",
        "SELECT DATE '2020-01-01'",
        "SELECT a FROM t WHERE b ILIKE 'x'",
        "SELECT a FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY a) = 1",
        "SELECT DISTINCT ON (a) b FROM t",
        "SELECT a FROM t SEMI JOIN u ON t.a = u.a",
        "SELECT * FROM t PIVOT (SUM(a) FOR b IN ('x'))",
        "SELECT a FROM t FETCH FIRST 1 ROWS ONLY",
        "SELECT a FROM t FOR UPDATE",
        "SELECT b FROM t AS s(a, b)",
        "SELECT a INTO u FROM t",
    ],
)
def test_what_sqlite_does_not_know_is_refused_and_not_translated(text):
    assert read(text).error is not None
    assert not read(text).steps


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "GREATEST(1, " * 40 + "1" + ")" * 40,
        "SELECT GREATEST(" + "1, " * 6000 + "1)",
        "SELECT " + "(" * 40 + "1" + " BETWEEN SYMMETRIC 1 AND 2)" * 40,
        "SELECT " + "(" * 40 + "'a'" + " LIKE ANY ('a', 'b'))" * 40,
        "SELECT " + "NVL2(" * 40 + "1" + ", 1, 2)" * 40,
    ],
)
def test_no_text_is_spelled_much_longer_than_it_is_read(text):
    assert sum(len(step.text) for step in read(text).steps) < 2 * len(text)


def test_what_models_write_badly_is_not_logged(caplog):
    read("EXPLAIN SELECT 1")
    read("SELECT a -> '$[' FROM t")
    assert not caplog.records


def test_queries_of_another_dialect_are_put_to_sqlite_in_its_own():
    (step,) = read("SELECT TOP 2 [order] FROM t", "tsql").steps
    assert step.run == 'SELECT "order" FROM t LIMIT 2'
    assert read(step.text, "tsql").steps == (step,)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t" + " JOIN t" * 60,  # sqlglot looks for an ON behind each, again and again
        "SELECT * FROM t" + " LEFT JOIN t" * 60 + " ON 1" * 30,
        "WITH a AS (SELECT * FROM t" + "\n JOIN t" * 60 + ")\nSELECT 1",
        "SELECT * FROM " + "(" * 20 + "t" + " JOIN t" * 40 + ")" * 20,
    ],
)
def test_no_text_is_read_for_ever(text):
    before = time.process_time()
    assert "too many ways to understand it" in read(text).error
    assert time.process_time() - before < 2


def test_how_deep_a_text_may_be_does_not_hang_on_who_reads_it():
    def reads(depth: int, callers: int) -> bool:
        if callers:
            return reads(depth, callers - 1)
        queries._texts.clear()
        return read("SELECT " + "(" * depth + "1" + ")" * depth).error is None

    queries._lines.clear()
    assert [reads(depth, callers) for depth in (25, 26) for callers in (200, 0)] == [True, True, False, False]


def test_beginnings_are_looked_for_as_long_as_that_is_cheap(monkeypatch):
    lines = ["WITH a AS (SELECT 1)", ", b AS (SELECT 2", *["+ 1" * 50] * 48]
    assert len(read("\n".join([*lines[:2], "FROM FROM)"])).steps) == 1
    asked = []
    monkeypatch.setattr(queries, "tree_of", lambda text, *_: asked.append(len(text)) or tree_of(text))
    queries._texts.clear()
    assert read("\n".join(lines)).error is not None
    assert 0 < sum(asked) < 5 * queries.MAX_CHARACTERS


def test_what_is_remembered_of_texts_is_bounded_in_bytes():
    long = "x" * 4_500
    for n in range(1_500):
        read(f"WITH a AS (SELECT '{long}{n}')\nSELECT '{long}{n}'")
    kept = len(queries._texts), len(queries._lines)
    assert all(
        0 < count * size < queries.MAX_REMEMBERED for count, size in zip(kept, (27_000, 13_000), strict=True)
    )
