"""What runs in a walled worker process: databases in memory, and a child for every batch of queries.

The process has no files: a database arrives as an open descriptor or as text and is copied into memory. A
child is forked for each batch, writes the rows on its sheet of shared memory and ends. So whatever a query
does to SQLite, the next batch finds the database as it was loaded, and the file is out of reach. Nothing but
the standard library and stepbox is imported here.
"""

from __future__ import annotations

import gc
import json
import math
import os
import random
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from os import _exit, closerange
from signal import ITIMER_PROF, setitimer
from typing import Any, NoReturn

from stepbox.channel import Sheet
from stepbox.walls import confine_program
from stepbox.worker import OUT_OF_MEMORY, REPLY, RunRequest, close_door, requests, send, serve

Step = tuple[str, str]  # name and definition of a common table expression; of the last select no name
Table = list[list[Any]]

TICK = 1_000  # operations of SQLite's machine between two looks at what is left
DEAR = 20_000  # operations, about what making a table costs
KEPT_ROWS, NEW_CELLS = 0.7, 0.3  # shares of a table that was changed
VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\b", re.IGNORECASE)
CHANGED_ROWS = 100_000  # of a changed table, about; Python holds them
WAL = bytes((2, 2))  # bytes 18 and 19 of a file with a log beside it
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1_000_000,  # of a text, a blob or a row: zeroblob, printf, replace, hex
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 200_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 500,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 200_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 50,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
}
READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
WRITES = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_CREATE_TEMP_TABLE}
# They reach out of the query, or give something else each time.
FORBIDDEN = {"load_extension", "fts3_tokenizer", "random", "randomblob", "changes", "total_changes"}


@dataclass(frozen=True)
class Allowance:
    """What one query may use."""

    operations: int = 30_000_000  # of SQLite's machine: the same verdict however busy the computer is
    cpu_seconds: float = 2.0  # a backstop, for functions that are one operation
    rows: int = 10_000
    bytes: int = 512 << 10  # of the rows of one step
    all_bytes: int = 4 << 20  # of the rows of all steps: the trainer reads and compares them


class StatementGuard:
    """Says what a statement may do, and counts what it uses."""

    def __init__(self) -> None:
        self.is_ours = True  # a statement of this file, not of a query
        self.materialises = False
        self.left: float = 0

    def allows(self, action: int, name: str | None, second: str | None, database: str | None, _: Any) -> int:
        if self.is_ours or action in READS:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            is_free = (second or "").lower() not in FORBIDDEN
            return sqlite3.SQLITE_OK if is_free else sqlite3.SQLITE_DENY
        is_free = self.materialises and action in WRITES and database == "temp"
        return sqlite3.SQLITE_OK if is_free else sqlite3.SQLITE_DENY

    def ticks(self) -> bool:
        self.left -= TICK
        return self.left < 0


class Store:
    """The databases of this process by their keys, each open once with its guard."""

    def __init__(self) -> None:
        self.open: dict[str, tuple[sqlite3.Connection, StatementGuard]] = {}
        self.bytes = 0

    def load(self, key: str, data: bytes, script: str = "") -> sqlite3.Connection:
        """Keep a database: the bytes of a file, or what a script makes."""
        connection = sqlite3.connect(":memory:", isolation_level=None)
        guard = StatementGuard()
        if data:
            if data[18:20] == WAL:
                data = data[:18] + bytes((1, 1)) + data[20:]
            connection.deserialize(data)
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA trusted_schema = OFF")
        for limit, value in LIMITS.items():
            connection.setlimit(limit, value)
        guard.left = Allowance().operations
        connection.set_progress_handler(guard.ticks, TICK)
        if script:
            connection.set_authorizer(_builds)
            connection.executescript(script)
        connection.set_authorizer(guard.allows)
        # Reads the schema, once for all, and makes the tables that queries must not make for themselves.
        connection.execute("SELECT COUNT(*) FROM sqlite_master, json_each('[]'), json_tree('[]')").fetchall()
        self.open[key] = connection, guard
        self.bytes += len(data) or connection.execute("PRAGMA page_count").fetchone()[0] * 4096
        return connection

    def describe(self, key: str, values: int) -> list[dict[str, Any]]:
        """Each table: its definition, its columns with their types, how many rows, and values of columns."""
        connection, guard = self.open[key]
        guard.left = math.inf  # however many columns there are
        found = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        return [
            {"name": name, "sql": sql, **self._columns(connection, name, values)}
            for name, sql in connection.execute(found).fetchall()
        ]

    def _columns(self, connection: sqlite3.Connection, table: str, values: int) -> dict[str, Any]:
        quoted = _quoted(table)
        columns = [[row[1], row[2]] for row in connection.execute(f"PRAGMA table_info({quoted})")]
        some = f"FROM (SELECT * FROM {quoted} LIMIT 1000)"
        samples = [
            [row[0] for row in connection.execute(f"SELECT DISTINCT {_quoted(name)} {some} LIMIT {values}")]
            for name, _ in columns
        ]
        return {"columns": columns, "values": [[_plain(value) for value in few] for few in samples]}

    def change(self, key: str, of: str, seed: int) -> None:
        """Keep a database with other rows: some are gone, and cells have other values of their columns."""
        connection = self.load(key, self.open[of][0].serialize())
        self.open[key][1].left = math.inf  # however large its tables are
        rng = random.Random(seed)
        found = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
        listed = connection.execute(found).fetchall()
        for trigger in (name for kind, name, _ in listed if kind == "trigger"):
            connection.execute(f"DROP TRIGGER {_quoted(trigger)}")
        for table in (name for kind, name, sql in listed if kind == "table" and not VIRTUAL.match(sql)):
            _change_table(connection, _quoted(table), rng)


def _change_table(connection: sqlite3.Connection, table: str, rng: random.Random) -> None:
    columns = connection.execute(f"PRAGMA table_info({table})").fetchall()  # not those that are computed
    fixed = {place for place, column in enumerate(columns) if column[5]}  # of the primary key
    names = ", ".join(_quoted(column[1]) for column in columns)
    ((count,),) = connection.execute(f"SELECT COUNT(*) FROM {table}")
    if not columns or not count:
        return
    found, share = connection.execute(f"SELECT {names} FROM {table}"), CHANGED_ROWS / count
    rows = found.fetchall() if share >= 1 else [row for row in found if rng.random() < share]
    kept = [row for row in rows if rng.random() < KEPT_ROWS] or rows
    changed = [
        [
            cell if place in fixed or rng.random() >= NEW_CELLS else rng.choice(rows)[place]
            for place, cell in enumerate(row)
        ]
        for row in kept
    ]
    connection.execute(f"DELETE FROM {table}")
    marks = ", ".join("?" * len(columns))
    connection.executemany(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", changed)


def _builds(action: int, *_: object) -> int:
    """What a script that makes a database may do: everything inside that database."""
    if action == sqlite3.SQLITE_PRAGMA:  # a dump begins with one
        return sqlite3.SQLITE_IGNORE
    outside = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}
    return sqlite3.SQLITE_DENY if action in outside else sqlite3.SQLITE_OK


def main() -> None:
    """Serve requests from the channel until it closes."""
    "".encode("utf-16")  # later, no file can be opened to load it from
    sqlite3.connect(":memory:").execute("SELECT 1").fetchall()
    store = Store()
    close_door()
    for request, descriptors in requests():
        match request:
            case {"run": key, "queries": count, "allowance": allowance, "whole": whole}:
                used = Allowance(**allowance)
                limits = RunRequest(
                    cpu_seconds=used.cpu_seconds,
                    wall_seconds=20 + count * used.cpu_seconds * 2,
                    cpu_limit=int(count * used.cpu_seconds) + 2,
                    memory_bytes=(512 << 20) + 2 * store.bytes,
                )
                serve(limits, descriptors, partial(live, *store.open[key], used, whole))
            case other:
                send(REPLY + json.dumps(_prepared(store, other, descriptors)).encode())


def _prepared(store: Store, request: Any, descriptors: Sequence[int]) -> Any:
    """Whatever is not a batch of queries: a database that is loaded, changed or described; or an error."""
    try:
        match request:
            case {"load": key, "script": script}:
                store.load(key, b"".join(map(_contents, descriptors)), script)
                return store.bytes
            case {"change": key, "of": of, "seed": seed}:
                store.change(key, of, seed)
                return store.bytes
            case {"describe": key, "values": values}:
                return store.describe(key, values)
    except (sqlite3.Error, MemoryError, ValueError) as error:  # a text may hold what no text can
        return {"error": str(error) or "out of memory"}
    return {"error": "an unknown request"}


def _contents(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def live(
    connection: sqlite3.Connection,
    guard: StatementGuard,
    allowance: Allowance,
    whole: bool,
    request: RunRequest,
    descriptor: int,
    zygote: int,
) -> NoReturn:
    """A child's whole life: the rows of every step of every query on its sheet, line by line."""
    status = 70  # unless the lines below come to their end
    try:
        sheet = Sheet(descriptor)
        closerange(0, 256)  # the sheet stays mapped
        gc.disable()
        confine_program(request.memory_bytes, request.cpu_limit, zygote)
        for steps, written in json.loads(sheet.program()[-1]):
            setitimer(ITIMER_PROF, allowance.cpu_seconds)  # its signal ends this process
            failure = _run(connection, guard, allowance, whole, steps, written, sheet)
            if not sheet.append(json.dumps({"failure": failure}).encode() + b"\n"):
                break
        status = 0
    except MemoryError:
        status = OUT_OF_MEMORY
    finally:
        _exit(status)


def _run(
    connection: sqlite3.Connection,
    guard: StatementGuard,
    allowance: Allowance,
    whole: bool,
    steps: Sequence[Step],
    written: str,
    sheet: Sheet,
) -> list[str] | None:
    """Write the rows of each step; why the next one has none, if it fails."""
    guard.left, room = allowance.operations, allowance.all_bytes
    tables = _tables(connection, guard, steps, written, allowance, math.inf if whole else DEAR)
    _ours(connection, guard, "BEGIN")
    guard.is_ours = False
    try:
        for table in tables:
            if len(table) > allowance.rows:
                return ["memory", f"more than {allowance.rows:,} rows"]
            line = json.dumps([[_plain(cell) for cell in row] for row in table]).encode() + b"\n"
            room -= len(line)
            if len(line) > allowance.bytes or room < 0:
                most = allowance.bytes if room >= 0 else allowance.all_bytes
                return ["memory", f"rows of more than {most:,} bytes"]
            if not sheet.append(line):
                return ["memory", "no room for the rows of so many queries"]
    except (sqlite3.Error, sqlite3.Warning, OverflowError, MemoryError, UnicodeError) as error:
        return _failure(error)
    finally:
        if connection.in_transaction:  # SQLite ends it by itself where making a table was interrupted
            _ours(connection, guard, "ROLLBACK")
    return None


def _tables(
    connection: sqlite3.Connection,
    guard: StatementGuard,
    steps: Sequence[Step],
    written: str,
    allowance: Allowance,
    dear: float,
) -> Iterator[Table]:
    """The rows of each step.

    A beginning is run whole as long as that is cheap. Once it took more than `dear` operations, what stands
    before a step is made a table, once for all that follow. SQLite has to understand the last step as it was
    written, and runs that where it is not dear.
    """
    made = 0  # of the steps that are tables
    for place, (name, text) in enumerate(steps):
        if allowance.operations - guard.left > dear:
            for step in steps[made:place]:
                _make_table(connection, guard, *step)
            made = place
        before = [definition for _, definition in steps[made:place]] + ([text] if name else [])
        last = f"SELECT * FROM {_quoted(name)}" if name else text
        query = f"WITH {', '.join(before)} {last}" if before else last
        if written and not name:
            try:
                connection.execute(f"EXPLAIN {written}")
            except sqlite3.Error as error:
                raise sqlite3.OperationalError(f"as it was written: {error}") from None
            query = query if made else written
        yield connection.execute(query).fetchmany(allowance.rows + 1)


def _make_table(connection: sqlite3.Connection, guard: StatementGuard, name: str, text: str) -> None:
    guard.materialises = True
    name = _quoted(name)
    connection.execute(f"CREATE TEMP TABLE {name} AS WITH {text} SELECT * FROM {name}")
    guard.materialises = False


def _ours(connection: sqlite3.Connection, guard: StatementGuard, statement: str) -> None:
    guard.is_ours, guard.materialises = True, False
    connection.execute(statement)


def _failure(error: Exception) -> list[str]:
    message = str(error) or type(error).__name__
    if message == "interrupted":
        return ["timeout", "takes too many operations"]
    if "not authorized" in message or "prohibited" in message:
        return ["forbidden", message]
    is_large = isinstance(error, MemoryError) or "too big" in message or "out of memory" in message
    return ["memory" if is_large else "error", message[:500]]


def _plain(value: Any) -> Any:
    """A cell as JSON has it; a blob is spelled as SQL spells it."""
    return f"x'{value.hex()}'" if isinstance(value, bytes) else value


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
