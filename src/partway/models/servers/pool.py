"""Several servers as one: requests go to the least busy, and from one that fails to another.

A server that fails is left alone for a while and then looked at again: it is used once it answers and has the
current weights. With none left, whoever asks waits, and gives up after `patience` seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Condition
from typing import TypeVar

from partway.errors import EngineError
from partway.models.servers.calls import Trouble
from partway.models.servers.endpoint import Endpoint, Work

T = TypeVar("T")

AT_ONCE = 32  # requests to one server; it batches what it has
REFUSALS = (400, 401, 403, 413, 422)  # the request is at fault, or we are: another time is as bad


class Pool:
    """`endpoints` to ask; `prepare` brings one that was away up to date, or raises a `Trouble`."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        patience: float,
        prepare: Callable[[Endpoint], None],
        say: Callable[[str], None],
    ) -> None:
        self.endpoints = list(endpoints)
        self.patience = patience
        self._prepare = prepare
        self._say = say
        self._changed = Condition()
        self._alone_since: float | None = None  # since when no server answered
        self._is_stopped = False

    @property
    def live(self) -> list[Endpoint]:
        """The servers that answered last time."""
        return [endpoint for endpoint in self.endpoints if endpoint.is_live]

    def ask(self, question: Callable[[Endpoint], T], size: int = 1) -> T:
        """The answer of the first server that gives one to `question`, which asks for `size` samples."""
        refused: dict[str, Trouble] = {}
        while True:
            endpoint = self._take(size, refused)
            try:
                answer = question(endpoint)
            except Trouble as trouble:
                self._give_back(endpoint, size)
                if trouble.status in REFUSALS:
                    refused[endpoint.url] = trouble
                else:
                    self._note_failure(endpoint, str(trouble))
            # Also Ctrl-C: what was begun must end, or whoever drains this server waits for ever.
            except BaseException:
                self._give_back(endpoint, size)
                raise
            else:
                self._give_back(endpoint, size, answered=True)
                return answer

    def each(self, act: Callable[[Endpoint], None]) -> None:
        """Do something with every live server at the same time; meanwhile it is asked nothing new."""
        with ThreadPoolExecutor(len(self.endpoints)) as executor:
            list(executor.map(lambda endpoint: self._alone(endpoint, act), self.live))

    def look(self) -> None:
        """Look at every server that is not live, all at the same time, whenever it was tried last."""
        with self._changed:
            away = [e for e in self.endpoints if not e.is_live and not e.is_closed]
            for endpoint in away:
                endpoint.is_closed = True
        with ThreadPoolExecutor(len(self.endpoints)) as executor:
            list(executor.map(self._revive, away))

    def stop(self) -> None:
        """Let nobody wait any more."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def tell(self, urls: Sequence[str], act: Callable[[Endpoint], None], otherwise: str) -> None:
        """Do something with the servers at `urls`; the other live ones have failed, as somebody else saw."""
        for endpoint in self.live:
            if endpoint.url in urls:
                act(endpoint)
            else:
                self._note_failure(endpoint, otherwise)

    def reasons(self) -> str:
        """Why servers are not live, each."""
        return "; ".join(f"{endpoint.url}: {endpoint.reason}" for endpoint in self.endpoints)

    def work(self) -> dict[str, Work]:
        """What each server did since this was last asked, by its address."""
        with self._changed:
            return {endpoint.url: endpoint.handed_over() for endpoint in self.endpoints}

    def _take(self, size: int, refused: dict[str, Trouble]) -> Endpoint:
        """The least busy server that has not refused this; if there is none, the next that comes back."""
        while True:
            with self._changed:
                if self._is_stopped:
                    raise EngineError("the servers are asked no more")
                if refused and all(e.url in refused for e in self.live):
                    url, trouble = next(iter(refused.items()))
                    raise EngineError(f"{url}: {trouble}")
                if (away := self._due()) is None:
                    if free := [e for e in self.live if self._has_room(e) and e.url not in refused]:
                        endpoint = min(free, key=lambda e: e.load)
                        endpoint.begin(size)
                        return endpoint
                    self._wait()
                    continue
                away.is_closed = True
            # Without the lock, as this takes seconds; the mark keeps the others away.
            self._revive(away)

    def _has_room(self, endpoint: Endpoint) -> bool:
        return not endpoint.is_closed and endpoint.in_flight < AT_ONCE

    def _due(self) -> Endpoint | None:
        """A server that is away and may be looked at again."""
        now = time.monotonic()
        away = (e for e in self.endpoints if not e.is_live and not e.is_closed)
        return next((e for e in away if e.retry_at <= now), None)

    def _wait(self) -> None:
        """Wait until something changes or a server is due; gives up when none was live for too long."""
        now = time.monotonic()
        if self.live or any(e.is_closed for e in self.endpoints):
            # Not longer: meanwhile a server that was away may become due.
            self._changed.wait(1.0)
            return
        if self._alone_since is None:
            self._alone_since = now
        if now - self._alone_since > self.patience:
            raise EngineError(f"no server answered for {self.patience:g} s ({self.reasons()})")
        self._changed.wait(max(0.01, min(1.0, min(e.retry_at for e in self.endpoints) - now)))

    def _revive(self, endpoint: Endpoint) -> None:
        """See whether a server is back; its mark `is_closed` keeps others from doing the same."""
        trouble: Trouble | None = None
        try:
            endpoint.connect()
            self._prepare(endpoint)
        except Trouble as error:
            trouble = error
        finally:
            with self._changed:
                endpoint.is_closed = False
                was_asked = endpoint.failures > 0
                if trouble is None:
                    endpoint.is_live = True  # only an answer shows more: patience goes on until then
                else:
                    self._fail(endpoint, str(trouble))
                self._changed.notify_all()
        if trouble is None and was_asked:
            self._say(f"{endpoint.url} answers again")

    def drain(self, endpoint: Endpoint) -> None:
        """Wait until a server, which is asked nothing new, has answered what it was asked."""
        with self._changed:
            self._changed.wait_for(lambda: endpoint.in_flight == 0)

    def _alone(self, endpoint: Endpoint, act: Callable[[Endpoint], None]) -> None:
        with self._changed:
            endpoint.is_closed = True
        try:
            act(endpoint)
        except Trouble as trouble:
            self._note_failure(endpoint, str(trouble))
        finally:
            with self._changed:
                endpoint.is_closed = False
                self._changed.notify_all()

    def _give_back(self, endpoint: Endpoint, size: int, *, answered: bool = False) -> None:
        with self._changed:
            endpoint.end(size)
            if answered:
                endpoint.failures, self._alone_since = 0, None
            self._changed.notify_all()

    def _note_failure(self, endpoint: Endpoint, reason: str) -> None:
        with self._changed:
            if endpoint.is_live:  # many requests fail with it, and one line says so
                self._fail(endpoint, reason)
            self._changed.notify_all()

    def _fail(self, endpoint: Endpoint, reason: str) -> None:
        was_news = endpoint.is_live or endpoint.failures == 0
        endpoint.failed(reason)
        if not was_news:
            return
        if self.live:
            self._say(f"{endpoint.url}: {reason}; its requests go to the others")
        elif all(e.failures for e in self.endpoints):
            self._say(f"no server answers ({self.reasons()}); waiting up to {self.patience:g} s for one")
