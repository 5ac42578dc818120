"""Queries per second and core: GeoQuery's references, each step once against every beginning run whole.

python benchmarks/sql_tracing.py data/geoquery/train.jsonl
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from partway.problems import load_problems
from partway.sql import queries, workers
from partway.sql.databases import Database
from partway.sql.queries import read
from partway.sql.sql import SQLLanguage, _known
from partway.sql.sqlite_worker import Allowance

HEAVY = (
    "CREATE TABLE t (a INT, b INT); WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < "
)
HEAVY += "2000) INSERT INTO t SELECT x, x * x % 97 FROM r"
CHAIN = "WITH s1 AS (SELECT COUNT(*) AS n, u.b AS k FROM t AS u, t AS v WHERE u.b < v.b GROUP BY u.b)"
CHAIN += "".join(f"\n, s{n} AS (SELECT n + 1 AS n, k FROM s{n - 1} WHERE n > 0)" for n in range(2, 7))
CHAIN += "\nSELECT SUM(n) FROM s6"


def seconds(work: Callable[[], object]) -> float:
    """Processor time of this process and of the workers, which are ended to be counted."""
    start = _spent()
    work()
    workers._SHARED.close()
    return _spent() - start


def _spent() -> float:
    return sum(os.times()[:4])


def main(path: str) -> None:
    language = SQLLanguage(schema="none")
    pairs = [(one, one.reference.text) for one in load_problems(path, language=language) if one.reference]
    asked = [language._query(one, text, read(text)) for one, text in pairs]
    runs = [query for query in asked if isinstance(query, workers.Query)] * 10

    def cold() -> None:
        for _ in range(3):
            _known.clear()
            queries._texts.clear()
            queries._lines.clear()
            language.trace_all(pairs)

    def warm() -> None:
        for _ in range(5):
            _known.clear()  # texts are known, rows are not
            language.trace_all(pairs)

    def remembered() -> None:
        for _ in range(50):
            language.trace_all(pairs)

    count = len(pairs)
    seconds(lambda: workers.run(runs[:1]))  # what is imported and read for the first time does not count
    started = seconds(lambda: workers.run(runs[:128]))  # workers start, a batch for each
    rates = {
        "SQLite alone, each step once": 10 * count / (seconds(lambda: workers.run(runs)) - started),
        "SQLite alone, every beginning whole": 10
        * count
        / (seconds(lambda: workers.run(runs, whole=True)) - started),
        "traced, nothing known": 3 * count / (seconds(cold) - started),
        "traced, texts known": 5 * count / (seconds(warm) - started),
        "traced, rows known": 50 * count / seconds(remembered),
    }
    for name, rate in rates.items():
        print(f"{name:<40} {rate:>10,.0f} queries per second and core")
    heavy = workers.Query(Database("heavy", script=HEAVY), tuple((s.name, s.run) for s in read(CHAIN).steps))
    room = Allowance(operations=10**9, cpu_seconds=60)
    once = seconds(lambda: workers.run([heavy], allowance=room)) - started
    whole = seconds(lambda: workers.run([heavy], allowance=room, whole=True)) - started
    print(
        f"a costly first step and six after it: each once {once:.2f} s, every beginning whole {whole:.2f} s"
    )
    print(f"{count} queries, {time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores")


if __name__ == "__main__":
    main(*sys.argv[1:])
