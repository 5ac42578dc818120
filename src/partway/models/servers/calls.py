"""Calls to one server: JSON there and back within bounds; whatever goes wrong is one kind of trouble."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from partway.errors import EngineError
from partway.models.bounded_http import BoundedHttp, UnusableAnswer
from partway.models.completions_client import (
    LARGEST_BODY,
    api_key,
    checked_url,
    parsed,
    shortened,
    what_failed,
    what_it_says,
    without_key,
)

LOOKING = 60.0  # seconds for a question about the server itself, which may be busy


class Trouble(EngineError):
    """A server did not do what it was asked; carries the HTTP status, if it came to one."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


class Calls:
    """The server at `root`; `timeout` is for answers with completions and for loading weights."""

    def __init__(self, root: str, *, timeout: float, connections: int) -> None:
        self.root = checked_url(root).removesuffix("/v1")
        self._key = api_key(self.root)
        self._http = BoundedHttp(self._key, connections=connections, timeout=timeout)

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
        """Give up all calls."""
        self._http.close()

    def _body(self, method: str, path: str, payload: Mapping[str, Any] | None, timeout: float | None) -> str:
        try:
            answer = self._http.send(method, f"{self.root}{path}", payload, LARGEST_BODY, timeout)
        except UnusableAnswer as error:
            raise Trouble(without_key(str(error), self._key)) from error
        except httpx.RequestError as error:
            raise Trouble(what_failed(error, self._key)) from error
        body = without_key(answer.body.decode("utf-8", "replace"), self._key)
        if answer.status != 200:
            raise Trouble(f"{path} gave status {answer.status}: {what_it_says(body)}", answer.status)
        return body

    def _parsed(self, path: str, body: str) -> Any:
        try:
            return parsed(body) if body.strip() else {}
        except (ValueError, RecursionError):
            raise Trouble(f"{path} gave no JSON but {shortened(body)}") from None
