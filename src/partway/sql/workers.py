"""Queries to rows, run by SQLite in walled processes that hold the databases in memory.

This process never opens a database itself: it hands over descriptors and reads what comes back after checking
it. A worker that dies is replaced, and the query that it died with has failed.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Container, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from partway.errors import ProblemError
from partway.language import Failure
from partway.sandbox.room import in_our_words, weak_is_allowed
from partway.sql.databases import Database, TableInfo
from partway.sql.sqlite_worker import Allowance, Step, Table
from stepbox.channel import NOTHING_REFUSED, SentSheet
from stepbox.pool import cores
from stepbox.process import START_SECONDS, WorkerProcess, unusable
from stepbox.results import read_failure
from stepbox.wire import WireError

PROGRAM = Path(__file__).with_name("sqlite_worker.py")
MAX_WORKERS = 4
BATCH = 64  # queries of one child
MAX_LOADED = 2 << 30  # bytes of databases in one worker, which then begins anew
MAX_DATABASES = 2_000  # in one worker: each takes 50 KB, and what is forked of a large process is slow
SHEET_BYTES = 32 << 20
USUAL = Allowance()


@dataclass(frozen=True)
class Query:
    """The steps of a query and the database it is asked of.

    `written`, if there is one, is the whole query as somebody wrote it: its rows are the answer.
    """

    database: Database
    steps: tuple[Step, ...]
    written: str = ""


@dataclass(frozen=True)
class Answered:
    """The rows of each step that ran, and why the next one did not."""

    tables: tuple[Table, ...]
    failure: Failure | None = None


def run(
    queries: Sequence[Query], *, allowance: Allowance | None = None, whole: bool = False
) -> list[Answered]:
    """The rows of every step of every query; with `whole`, every beginning of a query is run on its own."""
    with in_our_words():
        return _SHARED.run(queries, allowance or USUAL, whole)


def load_flaw(database: Database) -> str | None:
    """Why a database cannot be loaded; None if it can, or could before."""
    with in_our_words():
        try:
            if database.key not in _SHARED.usable:
                _SHARED.describe(database, 0)
        except ProblemError as error:
            return str(error)
    return None


def describe(database: Database, values: int = 3) -> list[TableInfo]:
    """The tables of a database, with some values of each column."""
    with in_our_words():
        return [TableInfo(**row) for row in _SHARED.describe(database, values)]


class _Worker(WorkerProcess):
    """A worker process and what it has loaded."""

    def __init__(self) -> None:
        super().__init__(program=PROGRAM)
        self.loaded: set[str] = set()
        self.bytes = 0  # of all databases that it has loaded

    @property
    def is_full(self) -> bool:
        return self.bytes > MAX_LOADED or len(self.loaded) > MAX_DATABASES

    def ask(self, database: Database, request: object, descriptors: Sequence[int] = ()) -> Any:
        """Have a worker that is idle do something with a database, other than queries."""
        self.send(request, descriptors)
        reply = json.loads(self.next_payload(time.monotonic() + 2 * START_SECONDS)[1:])
        if isinstance(reply, dict):
            raise ProblemError(f"{database} cannot be used: {reply.get('error')}")
        return reply

    def load(self, database: Database) -> None:
        if database.key in self.loaded:
            return
        if database.seed is not None:
            self.load(database.original)
            request = {"change": database.key, "of": database.original.key, "seed": database.seed}
            self.bytes = self.ask(database, request)
        else:
            with contextlib.ExitStack() as stack:
                files = [stack.enter_context(database.path.open("rb"))] if database.path else []
                request = {"load": database.key, "script": database.script}
                self.bytes = self.ask(database, request, [file.fileno() for file in files])
        self.loaded.add(database.key)


@dataclass
class _Batch:
    """Queries of one database, by number, that wait or are under way."""

    database: Database
    numbers: list[int]
    sheet: SentSheet | None = None
    deadline: float = 0.0
    is_second_try: bool = False


class _Pool:
    """The workers of this process, made when first asked for; one call at a time uses them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.workers: list[_Worker] = []
        self.usable: set[str] = set()  # keys of the databases that were loaded
        self.closes = False

    def describe(self, database: Database, values: int) -> Any:
        with self.lock:
            is_second_try = False
            while True:
                worker = self.grow(1)[0]
                try:
                    self.load(worker, database)
                    return worker.ask(database, {"describe": database.key, "values": values})
                except (OSError, EOFError, WireError) as error:
                    self.drop(worker, error, database, is_second_try)
                is_second_try = True

    def run(self, queries: Sequence[Query], allowance: Allowance, whole: bool) -> list[Answered]:
        with self.lock:
            try:
                return list(self.answers(queries, allowance, whole))
            except BaseException:
                self.close()  # no worker may be left with replies under way
                raise

    def answers(self, queries: Sequence[Query], allowance: Allowance, whole: bool) -> list[Answered]:
        waiting = deque(_batches(queries))
        results: dict[int, Answered] = {}
        under_way: dict[_Worker, _Batch] = {}
        with selectors.DefaultSelector() as selector:
            while waiting or under_way:
                count = min(cores(), MAX_WORKERS, len(waiting) + len(under_way))
                idle = [one for one in self.grow(count, under_way) if one not in under_way]
                for worker in idle[: len(waiting)]:
                    batch = waiting.popleft()
                    try:
                        self.send(worker, batch, queries, allowance, whole)
                    except (OSError, EOFError, WireError) as error:
                        self.drop(worker, error, batch.database, batch.is_second_try)
                        waiting.appendleft(_Batch(batch.database, batch.numbers, is_second_try=True))
                        continue
                    except ProblemError as error:
                        failed = Answered((), Failure("error", str(error), 0, is_own=False))
                        results |= dict.fromkeys(batch.numbers, failed)
                        continue
                    under_way[worker] = batch
                    selector.register(worker.socket, selectors.EVENT_READ, worker)
                ready = {key.data for key, _ in selector.select(timeout=1.0)}
                for worker, batch in list(under_way.items()):
                    if worker not in ready and time.monotonic() < batch.deadline:
                        continue
                    selector.unregister(worker.socket)
                    del under_way[worker]
                    found = list(_read(batch, queries, self.ending(worker, worker in ready)))
                    results |= dict(zip(batch.numbers, found, strict=False))
                    if left := batch.numbers[len(found) :]:  # those after the one that ended its process
                        waiting.appendleft(_Batch(batch.database, left))
        return [results[number] for number in range(len(queries))]

    def load(self, worker: _Worker, database: Database) -> None:
        worker.load(database)
        self.usable.add(database.key)

    def send(
        self, worker: _Worker, batch: _Batch, queries: Sequence[Query], allowance: Allowance, whole: bool
    ) -> None:
        self.load(worker, batch.database)
        text = json.dumps([(queries[number].steps, queries[number].written) for number in batch.numbers])
        batch.sheet = SentSheet.of((text,), "", SHEET_BYTES, NOTHING_REFUSED)
        batch.deadline = time.monotonic() + START_SECONDS + 4 * len(batch.numbers) * allowance.cpu_seconds
        request = {"run": batch.database.key, "queries": len(batch.numbers), "whole": whole}
        worker.send(request | {"allowance": asdict(allowance)}, [batch.sheet.descriptor])

    def ending(self, worker: _Worker, is_ready: bool) -> Failure | None:
        """How the process of a batch ended; a worker that is gone is dropped."""
        try:
            if not is_ready:
                raise EOFError("it does not answer")
            payload = worker.next_payload(time.monotonic() + START_SECONDS)
        except (OSError, EOFError, WireError) as error:
            self.workers.remove(worker)
            worker.close()
            return Failure("error", f"the worker is gone: {error}", 0, is_own=False)
        if payload[:1] == b"U":
            raise unusable(payload[1:].decode(errors="replace"))
        found = read_failure(json.loads(payload.partition(b" ")[2]), 0)
        return None if found is None else Failure(found.kind, found.message, 0)

    def grow(self, count: int, under_way: Container[_Worker] = ()) -> list[_Worker]:
        """At least `count` workers, all idle but those under way; one that holds too much begins anew."""
        if not self.closes:
            self.closes = True
            atexit.register(self.close)
        for worker in [one for one in self.workers if one.is_full and one not in under_way]:
            self.workers.remove(worker)
            worker.close()
        new = [_Worker() for _ in range(count - len(self.workers))]
        for worker in new:
            worker.greet()
            worker.check_walls(weak_is_allowed())
        self.workers += new
        return self.workers

    def drop(self, worker: _Worker, error: Exception, database: Database, is_second_try: bool) -> None:
        """Give up a worker that ended while it was idle, or, if it is the second, loading a database."""
        self.workers.remove(worker)
        worker.close()
        if is_second_try:
            raise ProblemError(f"{database} cannot be used: workers end while they load it ({error})")

    def close(self) -> None:
        while self.workers:
            self.workers.pop().close()

    def forget(self) -> None:
        """In a forked child: leave the parent's workers to the parent."""
        self.lock = threading.Lock()
        while self.workers:
            self.workers.pop().abandon()


def _batches(queries: Sequence[Query]) -> Iterator[_Batch]:
    by_database: dict[Database, list[int]] = {}
    for number, query in enumerate(queries):
        by_database.setdefault(query.database, []).append(number)
    for database, numbers in by_database.items():
        for start in range(0, len(numbers), BATCH):
            yield _Batch(database, numbers[start : start + BATCH])


def _read(batch: _Batch, queries: Sequence[Query], ending: Failure | None) -> Iterator[Answered]:
    """What became of each query of a batch, up to the one that ended its process.

    A child might have been taken over, so its lines are read as a stranger's.
    """
    assert batch.sheet is not None, "a batch that was sent has a sheet"
    lines = deque(batch.sheet.record().split(b"\n")[:-1])
    batch.sheet.throw_away()
    for number in batch.numbers:
        tables: list[Table] = []
        while lines:
            match _line(lines.popleft()):
                case [*rows] if len(tables) < len(queries[number].steps) and all(map(_is_row, rows)):
                    tables.append(rows)
                case {"failure": failure}:
                    yield Answered(tuple(tables), _failure(failure, len(tables)))
                    break
                case _:
                    yield Answered((), Failure("error", "the worker's reply was refused", 0, is_own=False))
                    return
        else:
            ending = ending or Failure("memory", "no room for the rows", 0)
            yield Answered(tuple(tables), Failure(ending.kind, ending.message, len(tables), ending.is_own))
            return


def _line(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_row(row: Any) -> bool:
    return isinstance(row, list) and all(cell is None or isinstance(cell, int | float | str) for cell in row)


def _failure(said: Any, step: int) -> Failure | None:
    try:
        found = read_failure(said, step)
    except WireError:
        return Failure("error", "the worker's reply was refused", step, is_own=False)
    return None if found is None else Failure(found.kind, found.message, found.step, found.is_own)


_SHARED = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_SHARED.forget)
