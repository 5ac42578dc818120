"""One request to an OpenAI-style completions endpoint: sent, retried, and its answer checked."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from typing import Any

import httpx

from partway.errors import EngineError
from partway.models.bounded_http import Answer, BoundedHttp, UnusableAnswer
from partway.models.settings import SamplingSettings
from partway.parsing import MAX_CHARACTERS

STOP = ["\n#"]  # a comment begins another problem
RETRIED_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
LONGEST_PAUSE = 60.0  # seconds we choose to wait
LONGEST_WAIT = 300.0  # seconds a server may ask us to wait
MOST_TIMEOUTS = 2
LARGEST_BODY = 8 * 1024 * 1024  # bytes; 128 completions of 512 tokens are under one MiB
MOST_VALUES = 1_000_000  # of JSON in one body; each takes up to thirty times its bytes in memory
MOST_PER_CALL = 128  # the `n` that large providers accept
ABORTED = ("abort", "error")  # how servers say that they gave up a completion


@dataclass(frozen=True, slots=True)
class Choice:
    """One completion as the server gave it; `finished` unless it was cut off by length.

    `tokens` and their `log_probs` are there if the server says them.
    """

    text: str
    finished: bool
    tokens: tuple[int, ...] | None = None
    log_probs: tuple[float, ...] | None = None


class Aborted(ValueError):
    """The server gave up a completion in the middle: what came of it is no sample."""


class Refusal(EngineError):
    """The server understood and will not; carries the HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _Trouble(Exception):
    """What may pass by waiting, and how many seconds the server asks for."""

    def __init__(self, reason: str, *, wait: float = 0.0, is_timeout: bool = False) -> None:
        super().__init__(reason)
        self.wait = wait
        self.is_timeout = is_timeout


class CompletionsClient:
    """Asks `URL/completions` for text. The API key, if any, is sent and otherwise never shown."""

    def __init__(
        self,
        url: str,
        *,
        model: str | None,
        extra_body: Mapping[str, Any] | None,
        connections: int,
        retries: int,
        timeout: float,
        sleep: Callable[[float], None],
    ) -> None:
        self.url = checked_url(url)
        self.model = model
        self.extra_body = dict(extra_body or {})
        self.retries = retries
        self._sleep = sleep
        # Of its own: how long to wait is not part of what a seed decides.
        self._jitter = random.Random()
        self._per_call = MOST_PER_CALL  # lowered to what the server turns out to give
        self._served: str | None = None  # the model it says it answers with
        self._has_answered = False
        self._key = api_key(self.url)
        self._http = BoundedHttp(self._key, connections=connections, timeout=timeout)

    def complete(self, prompt: str, count: int, settings: SamplingSettings, seed: int) -> list[Choice]:
        """Between one and `count` completions of `prompt`; a server may give fewer than it is asked for."""
        count = min(count, self._per_call)
        try:
            choices = self._post(self._payload(prompt, count, settings, seed), count)
        except Refusal as refusal:
            if count == 1 or refusal.status not in (400, 422):
                raise
            self._per_call = 1  # perhaps it only minds being asked for several
            return self.complete(prompt, count, settings, seed)
        if len(choices) < count:
            self._per_call = min(self._per_call, len(choices))
        return choices

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def _payload(self, prompt: str, count: int, settings: SamplingSettings, seed: int) -> dict[str, Any]:
        top_k = {"top_k": settings.top_k} if settings.top_k else {}  # not every server knows it
        body = openai_body(prompt, count, settings, seed, self.model)
        return body | {"stop": STOP} | top_k | self.extra_body

    def _post(self, payload: Mapping[str, Any], count: int) -> list[Choice]:
        """What a good answer holds; what may pass by waiting is tried again, later each time."""
        timeouts = 0
        for attempt in itertools.count():
            try:
                return self._choices(self._answer(payload), count)
            except _Trouble as trouble:
                timeouts += trouble.is_timeout
                if attempt >= self.retries or timeouts >= MOST_TIMEOUTS:
                    tried = f"no answer after {attempt + 1} attempts, the last one: {trouble}"
                    raise self._error(tried) from trouble
                pause = min(LONGEST_PAUSE, 2.0**attempt) * self._jitter.uniform(0.5, 1.0)
                self._sleep(max(pause, trouble.wait))
        raise AssertionError("counting has no end")

    def _answer(self, payload: Mapping[str, Any]) -> str:
        try:
            answer = self._http.send("POST", f"{self.url}/completions", payload, LARGEST_BODY)
        except UnusableAnswer as error:
            raise self._error(str(error)) from error
        except httpx.ConnectError as error:
            if not self._has_answered:
                raise self._error(f"no connection ({error}); is the server running there?") from error
            raise _Trouble(f"no connection ({error})") from error
        except httpx.RequestError as error:
            is_timeout = isinstance(error, httpx.TimeoutException)
            raise _Trouble(what_failed(error, self._key), is_timeout=is_timeout) from error
        self._has_answered = True
        return self._accepted(answer)

    def _accepted(self, answer: Answer) -> str:
        body = without_key(answer.body.decode("utf-8", "replace"), self._key)
        if answer.status == 200:
            return body
        reason = f"status {answer.status}: {what_it_says(body)}"
        wait = _retry_after(answer.headers)
        if answer.status in RETRIED_STATUSES and wait <= LONGEST_WAIT:
            raise _Trouble(reason, wait=wait)
        raise Refusal(f"{self.url}: {reason}{_advice(answer.status)}", answer.status)

    def _choices(self, body: str, count: int) -> list[Choice]:
        try:
            said = parsed(body)
            choices = said["choices"]
            # One more than was asked for is enough to see that there are too many.
            read = [read_choice(choice) for choice in choices[: count + 1]]
        except Aborted as error:
            raise _Trouble(str(error)) from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._error(f"expected JSON with choices and texts, got {shortened(body)}") from error
        if not 1 <= len(read) <= count:
            raise self._error(f"{len(choices)} completions came and {count} were asked for")
        self._check_model(said.get("model"))
        return read

    def _check_model(self, name: Any) -> None:
        """Refuse a server that goes on with another model: results would be those of neither."""
        served, self._served = self._served, name if isinstance(name, str) else self._served
        if served not in (None, self._served):
            raise self._error(
                f"it answered as {shortened(served or '', 60)} and now as {shortened(name, 60)}; "
                "samples of two models do not go together, start again with the one you mean"
            )

    def _error(self, reason: str) -> EngineError:
        return EngineError(f"{self.url}: {without_key(reason, self._key)}")


def openai_body(
    prompt: str | Sequence[int], count: int, settings: SamplingSettings, seed: int, model: str | None
) -> dict[str, Any]:
    """What every OpenAI-style server understands."""
    body: dict[str, Any] = {
        "prompt": prompt if isinstance(prompt, str) else list(prompt),
        "n": count,
        "max_tokens": settings.max_completion_length,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "seed": seed,
    }
    return body if model is None else body | {"model": model}


def call_seed(seed: int, *names: object) -> int:
    """A seed for one call among many: 31 bits, which every server takes."""
    return int.from_bytes(blake2b(repr((seed, *names)).encode(), digest_size=4).digest()) >> 1


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
        raise EngineError(f"{shown}: no address of a server, expected one like http://localhost:8000/v1")
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


def read_choice(said: Mapping[str, Any]) -> Choice:
    """What a server says about one completion; of an endless text only as much as is ever parsed."""
    text = said["text"]
    if not isinstance(text, str):
        raise TypeError("a completion's text is no text")
    reason = said.get("finish_reason")
    if reason in ABORTED:
        raise Aborted(f"a completion was given up ({reason})")
    is_whole = reason != "length" and len(text) <= MAX_CHARACTERS
    half_pairs_replaced = text[:MAX_CHARACTERS].encode("utf-8", "replace").decode()
    return Choice(half_pairs_replaced, is_whole)


def without_key(text: str, key: str | None) -> str:
    """`text` with the API key blackened, wherever a server says it back."""
    return text.replace(key, "***") if key else text


def what_failed(error: Exception, key: str | None) -> str:
    """An error of the connection, which may quote what the server sent."""
    return shortened(without_key(f"{type(error).__name__} {error}", key))


def what_it_says(body: str) -> str:
    """What a server says about an error, wherever it says it."""
    try:
        said = parsed(body)
    except (ValueError, RecursionError):
        return shortened(body)
    for key in ("error", "detail", "message"):
        if isinstance(said, dict) and said.get(key):
            said = said[key]
    return shortened(said if isinstance(said, str) else body)


def shortened(text: str, limit: int = 200) -> str:
    """The beginning of `text` on one line, without what would steer a terminal."""
    shown = "".join(c if c.isprintable() else " " for c in text[: 10 * limit])
    line = " ".join(shown.split())
    return (line if len(line) <= limit else f"{line[:limit]} ...") or "nothing"


def _advice(status: int) -> str:
    match status:
        case 401 | 403:
            return "; set the environment variable PARTWAY_API_KEY"
        case 404 | 405:
            return "; expected an address like http://localhost:8000/v1 and a model the server has"
    return ""


def _retry_after(headers: Mapping[str, str]) -> float:
    """Seconds the server asks to wait."""
    asked = headers.get("Retry-After", "")
    try:
        seconds = float(asked)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(asked) - datetime.now(UTC)).total_seconds()
        except OverflowError:  # a year that no calendar here has
            return math.inf
        except (ValueError, TypeError):
            return 0.0
    # Not max(): this also makes 0 of a NaN, which float() reads without a word.
    return seconds if seconds > 0 else 0.0
