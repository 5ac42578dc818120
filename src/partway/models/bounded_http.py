"""HTTP that ends: an answer comes within so many seconds and so many bytes, whatever the server does.

A client that waits so long for each *piece* of an answer waits for ever on a server that sends one byte at a
time, or one `100 Continue` after another. Here a call as a whole has a deadline. An event loop can stop a
call anywhere, so the calls run in one, in a thread of its own.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from threading import Lock, Thread
from typing import Any

import httpx

LONGEST_CONNECTING = 30.0  # seconds


class UnusableAnswer(Exception):
    """An answer that is too large, or packed in a way that is not read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered: its status, its headers, its whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class BoundedHttp:
    """Sends JSON and receives answers, each call within `timeout` seconds; usable from many threads."""

    def __init__(self, key: str | None, *, connections: int, timeout: float) -> None:
        self.timeout = timeout
        self._headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._limits = httpx.Limits(max_connections=connections)
        self._opened: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = None
        self._opening = Lock()

    def send(
        self,
        method: str,
        url: str,
        payload: Mapping[str, Any] | None,
        largest: int,
        timeout: float | None = None,
    ) -> Answer:
        """The answer to `payload`, at most `largest` bytes; the errors are httpx's, and `UnusableAnswer`."""
        loop, client = self._open()
        call = self._call(client, method, url, payload, largest, timeout or self.timeout)
        return asyncio.run_coroutine_threadsafe(call, loop).result()

    def _open(self) -> tuple[asyncio.AbstractEventLoop, httpx.AsyncClient]:
        with self._opening:
            if self._opened is None:
                loop = asyncio.new_event_loop()
                # Cookies are not kept: new ones with every answer would grow without end.
                no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
                self._opened = (
                    loop,
                    httpx.AsyncClient(headers=self._headers, limits=self._limits, cookies=no_cookies),
                )
                # A daemon, so that a call under way does not keep an interrupted program alive.
                Thread(target=_run, args=(loop,), daemon=True).start()
            return self._opened

    def close(self) -> None:
        """Close all connections and give up the calls under way; a later call opens new ones."""
        with self._opening:
            opened, self._opened = self._opened, None
        if opened is not None:
            loop, client = opened
            asyncio.run_coroutine_threadsafe(_stop(client), loop).result()

    @staticmethod
    async def _call(
        client: httpx.AsyncClient,
        method: str,
        url: str,
        payload: Mapping[str, Any] | None,
        largest: int,
        timeout: float,
    ) -> Answer:
        # As ASCII, since half a character has no bytes: a server may have called its model so.
        content = None if payload is None else json.dumps(payload, allow_nan=False).encode("ascii")
        try:
            async with (
                asyncio.timeout(timeout),
                client.stream(
                    method,
                    url,
                    content=content,
                    timeout=httpx.Timeout(timeout, connect=min(timeout, LONGEST_CONNECTING)),
                ) as response,
            ):
                return Answer(response.status_code, response.headers, await _body(response, largest))
        except TimeoutError:
            raise httpx.ReadTimeout(f"no whole answer within {timeout:g} s") from None


async def _stop(client: httpx.AsyncClient) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await client.aclose()
    loop = asyncio.get_running_loop()
    # Not at once: whoever closes is still waiting for the result of this coroutine.
    loop.call_soon(loop.stop)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


async def _body(response: httpx.Response, largest: int) -> bytes:
    unpack = _unpacker(response.headers.get("Content-Encoding", ""))
    body = bytearray()
    async for piece in response.aiter_raw():
        # One byte more than is allowed: that is how an answer that is too large shows.
        body += unpack(piece, largest + 1 - len(body))
        if len(body) > largest:
            raise UnusableAnswer(f"an answer of more than {largest >> 20} MiB, expected a completion")
    return bytes(body)


def _unpacker(encoding: str) -> Callable[[bytes, int], bytes]:
    """How to unpack a piece of a body to at most so many bytes.

    We ask for no packing; a server behind some proxies packs once all the same. Twice is a trick: a
    kilobyte then becomes a gigabyte.
    """
    match encoding.strip().lower():
        case "" | "identity":
            return lambda piece, most: piece
        case "gzip" | "x-gzip" | "deflate":
            inflate = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress  # 32: with either header
        case _:
            raise UnusableAnswer(f"an answer packed as {encoding[:40]!r}, expected it unpacked")

    def unpack(piece: bytes, most: int) -> bytes:
        try:
            return inflate(piece, most)
        except zlib.error as error:
            raise UnusableAnswer(f"an answer that cannot be unpacked ({error})") from None

    return unpack
