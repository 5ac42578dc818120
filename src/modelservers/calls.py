"""Calls to one server: JSON both ways, with limits on seconds and bytes.

httpx bounds each wait for a piece of an answer; here the whole call has a deadline, also if the pieces come
one by one. Whatever goes wrong is a `Trouble` on one line, and the API key stands in none.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock, Thread
from typing import Any

import httpx

from partway.errors import EngineError, clipped, one_line, visible

LOOKING = 60.0  # seconds for a question about the server itself, which may be busy
CONNECTING = 30.0  # seconds
LARGEST_BODY = 8 << 20  # bytes; 128 completions of 512 tokens are under one MiB
MOST_VALUES = 1_000_000  # of JSON in one body; each takes up to thirty times its bytes in memory
UNPACKED = ("", "identity", "gzip", "deflate")  # once: packed twice, a kilobyte becomes a gigabyte
ADVICE = {
    401: "; set the environment variable PARTWAY_API_KEY",
    403: "; set the environment variable PARTWAY_API_KEY",
    404: "; expected an address like http://localhost:8000/v1 and a model the server has",
}


class Trouble(EngineError):
    """A server did not do what it was asked; carries the HTTP status and the wait it asked for, if any."""

    def __init__(self, reason: str, status: int | None = None, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.status = status
        self.wait = wait


class Calls:
    """The server at `url`; `timeout` is for answers with completions. Usable from many threads."""

    def __init__(self, url: str, *, timeout: float, connections: int) -> None:
        self.root = checked_url(url).removesuffix("/v1")
        self.timeout = timeout
        self._key = api_key(self.root)
        self._limits = httpx.Limits(max_connections=connections)
        self._opened: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = None
        self._opening = Lock()

    def get(self, path: str) -> Any:
        """What the server says about itself."""
        return self._parsed(path, self._body("GET", path, None, LOOKING))

    def post(self, path: str, payload: Mapping[str, Any] | None = None, timeout: float | None = None) -> Any:
        """What the server answers to `payload`."""
        return self._parsed(path, self._body("POST", path, payload, timeout))

    def tell(self, path: str, payload: Mapping[str, Any], timeout: float | None = None) -> None:
        """Let the server do something, whatever it then says in whatever format."""
        self._body("POST", path, payload, timeout)

    def close(self) -> None:
        """Close all connections and give up the calls under way; a later call opens new ones."""
        with self._opening:
            opened, self._opened = self._opened, None
        if opened is not None:
            loop, client = opened
            asyncio.run_coroutine_threadsafe(_stop(client), loop).result()

    def _body(self, method: str, path: str, payload: Mapping[str, Any] | None, timeout: float | None) -> str:
        # As ASCII, since half a character has no bytes: a server may have called its model so.
        content = None if payload is None else json.dumps(payload, allow_nan=False).encode("ascii")
        loop, client = self._open()
        request = client.build_request(
            method,
            f"{self.root}{path}",
            content=content,
            timeout=httpx.Timeout(timeout or self.timeout, connect=CONNECTING),
        )
        call = _received(client, request, timeout or self.timeout)
        try:
            response, received = asyncio.run_coroutine_threadsafe(call, loop).result()
        except httpx.RequestError as error:
            raise Trouble(shortened(self._blackened(f"{type(error).__name__} {error}"))) from error
        body = self._blackened(received.decode("utf-8", "replace"))
        if (status := response.status_code) != 200:
            reason = f"{path} gave status {status}: {_what_it_says(body)}{ADVICE.get(status, '')}"
            raise Trouble(reason, status, _retry_after(response))
        return body

    def _blackened(self, text: str) -> str:
        """`text` without the API key, wherever a server says it back."""
        return text.replace(self._key, "***") if self._key else text

    def _parsed(self, path: str, body: str) -> Any:
        try:
            return parsed(body) if body.strip() else {}
        except (ValueError, RecursionError):
            raise Trouble(f"{path} did not give JSON but {shortened(body)}", 200) from None

    def _open(self) -> tuple[asyncio.AbstractEventLoop, httpx.AsyncClient]:
        with self._opening:
            if self._opened is None:
                headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
                if self._key:
                    headers["Authorization"] = f"Bearer {self._key}"
                loop = asyncio.new_event_loop()
                self._opened = loop, httpx.AsyncClient(headers=headers, limits=self._limits)
                # A daemon, so that a call under way does not keep an interrupted program alive.
                Thread(target=_run, args=(loop,), daemon=True).start()
            return self._opened


async def _received(
    client: httpx.AsyncClient, request: httpx.Request, timeout: float
) -> tuple[httpx.Response, bytes]:
    """A response and its whole body, which is there in time and not too large."""
    try:
        async with asyncio.timeout(timeout):
            response = await client.send(request, stream=True)
            try:
                if (packed := response.headers.get("Content-Encoding", "").strip().lower()) not in UNPACKED:
                    raise httpx.DecodingError(f"an answer packed as {packed[:40]!r}, expected it unpacked")
                body = bytearray()
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > LARGEST_BODY:
                        raise httpx.DecodingError(f"an answer of more than {LARGEST_BODY >> 20} MiB")
                return response, bytes(body)
            finally:
                await response.aclose()
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


def api_key(url: str) -> str | None:
    """The key to send: PARTWAY_API_KEY to any server, OPENAI_API_KEY only over https."""
    key = os.environ.get("PARTWAY_API_KEY", "").strip()
    if not key and url.startswith("https://"):
        key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not (key.isascii() and key.isprintable()):
        raise EngineError("the API key in the environment has characters that no key has; set it again")
    return key or None


def checked_url(url: str) -> str:
    """`url` without a slash at its end; secrets in it are refused, as it is written to files."""
    try:
        parts = httpx.URL(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.host)
        is_address = is_address and (parts.port or 80) in range(1 << 16)
    except (httpx.InvalidURL, TypeError, UnicodeError):
        is_address = False
    if not is_address:
        shown = shortened(str(url).rpartition("@")[2])  # what is before it may be a password
        raise EngineError(f"{shown}: not the address of a server, expected one like http://localhost:8000/v1")
    if parts.userinfo or parts.query or parts.fragment:
        raise EngineError(
            f"{parts.scheme}://{parts.host}: the address holds more than host, port and path; "
            "put keys into the environment variable PARTWAY_API_KEY"
        )
    return url.rstrip("/")


def parsed(body: str) -> Any:
    """The JSON of an answer; a ValueError if it is none, or if it would fill the memory."""
    if body.count(",") + body.count("[") + body.count("{") > MOST_VALUES:
        raise ValueError(f"more than {MOST_VALUES:,} values")
    return json.loads(body)


def shortened(text: str, limit: int = 200) -> str:
    """The beginning of `text` on one line, without what would steer a terminal."""
    return clipped(one_line(visible(text[: 10 * limit])), limit) if text.strip() else "nothing"


def _what_it_says(body: str) -> str:
    """What a server says about an error, wherever it says it."""
    try:
        said = parsed(body)
    except (ValueError, RecursionError):
        return shortened(body)
    for key in ("error", "detail", "message"):
        if isinstance(said, dict) and said.get(key):
            said = said[key]
    return shortened(said if isinstance(said, str) else body)


def _retry_after(response: httpx.Response) -> float:
    """Seconds the server asks to wait; a date in their place is left out."""
    with suppress(ValueError):
        return max(0.0, float(response.headers.get("Retry-After", "0")))  # of 0 and NaN, this is 0
    return 0.0
