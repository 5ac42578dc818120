"""Connections that end, also those that never finish a request or never read the answer."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

LONGEST_EXCHANGE = 60.0  # seconds for a request and its answer together
MOST_CONNECTIONS = 64  # a browser opens six; all of them together stay far below a limit of 256 files


class BoundedConnection(H11Protocol):
    """A connection with a deadline for every exchange; a new one too many costs the oldest one its place."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "HTTP needs both directions"
        super().connection_made(transport)
        self._begin_exchange()
        if len(self.connections) > MOST_CONNECTIONS:
            oldest = min((c for c in self.connections if isinstance(c, BoundedConnection)), key=_deadline_of)
            oldest.transport.abort()
            self.connections.discard(oldest)  # it leaves for good a little later

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._begin_exchange()
        super().on_response_complete()

    def _begin_exchange(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(LONGEST_EXCHANGE, self.transport.abort)


def _deadline_of(connection: BoundedConnection) -> float:
    assert connection._deadline is not None, "every connection has a deadline from its beginning"
    return connection._deadline.when()
