"""One server as an engine sees it: alive or not, with which weights, and how much it has to do.

What it answers to a request for completions is believed only after it was checked.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from partway.models.completions_client import MOST_PER_CALL, Choice, read_choice
from partway.models.servers.calls import Calls, Trouble
from partway.models.servers.identity import Identity, identify
from partway.models.servers.kinds import Asked, Kind
from partway.models.servers.published import Published
from partway.models.settings import SamplingSettings

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds before a server that failed is tried again
LEAST_LOG_PROB, MOST_LOG_PROB = -1e5, 1e-3  # vLLM says -9999 for nothing; a rounded 0 may be above it


@dataclass
class Work:
    """What a server did since it was last asked about it."""

    samples: int = 0
    tokens: int = 0
    failures: int = 0
    busy: float = 0.0  # seconds with at least one request under way


@dataclass
class Endpoint:
    """A server. Whoever changes one of the marks below holds the pool's lock."""

    calls: Calls
    identity: Identity | None = None
    weights: Published | None = None
    before: Published | None = None  # the weights before these, which a slow request may still name
    is_live: bool = False
    is_closed: bool = False  # no new requests: weights are being loaded, or it is being looked at
    in_flight: int = 0  # requests
    load: int = 0  # samples they ask for
    failures: int = 0  # in a row
    retry_at: float = 0.0
    reason: str = "not asked yet"
    per_call: int = MOST_PER_CALL  # lowered to what the server turns out to give
    work: Work = field(default_factory=Work)
    _since: float = 0.0

    @property
    def url(self) -> str:
        """Where the server is."""
        return self.calls.root

    @property
    def kind(self) -> Kind:
        """Which kind of server it is, once it was identified."""
        assert self.identity is not None, "a server is asked only after it was identified"
        return self.identity.kind

    def connect(self) -> None:
        """Find out what the server is."""
        self.identity = identify(self.calls)

    def complete(
        self, asked: Asked, wanted: int, settings: SamplingSettings, seed: int
    ) -> tuple[list[Choice], Published | None]:
        """At least one and at most `wanted` completions, and the weights they were drawn with."""
        weights = self.weights
        count = min(wanted, self.per_call)
        body = self.kind.body(asked, count, settings, seed, weights)
        try:
            said = self.calls.post("/v1/completions", body)
        except Trouble as trouble:
            if count == 1 or trouble.status not in (400, 422):
                raise
            self.per_call = 1  # perhaps it only minds being asked for several
            return self.complete(asked, wanted, settings, seed)
        written = completions(said, count, settings.max_completion_length, asked.vocabulary)
        self.per_call = min(self.per_call, len(written)) if len(written) < count else self.per_call
        return written, weights

    def begin(self, samples: int) -> None:
        """A request is under way."""
        self._since = time.monotonic() if self.in_flight == 0 else self._since
        self.in_flight += 1
        self.load += samples

    def end(self, samples: int) -> None:
        """It is not any more."""
        self.in_flight -= 1
        self.load -= samples
        if self.in_flight == 0:
            self.work.busy += time.monotonic() - self._since

    def handed_over(self) -> Work:
        """What it did since this was last asked, requests under way included."""
        now = time.monotonic()
        if self.in_flight:
            self.work.busy += now - self._since
            self._since = now
        done, self.work = self.work, Work()
        return done

    def failed(self, reason: str) -> None:
        """Ask it nothing for a while, a longer one each time."""
        self.is_live = False
        self.reason = reason
        self.retry_at = time.monotonic() + min(LONGEST_PAUSE, FIRST_PAUSE * 2**self.failures)
        self.failures += 1
        self.work.failures += 1


def completions(said: Any, asked: int, longest: int, vocabulary: int) -> list[Choice]:
    """Between one and `asked` completions of at most `longest` tokens; a `Trouble` for anything else.

    `vocabulary` is how many tokens the model has: a number beyond them would be lost in the text.
    """
    try:
        choices = said["choices"]
        read = [_with_tokens(choice, longest, vocabulary) for choice in choices[: asked + 1]]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Trouble(f"expected choices with texts ({type(error).__name__}: {str(error)[:80]})") from None
    if not 1 <= len(read) <= asked:
        raise Trouble(f"{len(choices)} completions came and {asked} were asked for")
    return read


def _with_tokens(choice: Mapping[str, Any], longest: int, vocabulary: int) -> Choice:
    read = read_choice(choice)
    tokens = _tokens(choice.get("token_ids"), longest, vocabulary)
    tokens = None if read.text and not tokens else tokens  # it has a text, so these are not all
    return replace(read, tokens=tokens, log_probs=_log_probs(choice.get("logprobs"), tokens))


def _tokens(said: Any, longest: int, vocabulary: int) -> tuple[int, ...] | None:
    if not isinstance(said, list):
        return None
    if len(said) > longest + 1:
        raise ValueError(f"{len(said)} tokens came and {longest} were asked for")
    if not all(type(token) is int and 0 <= token < vocabulary for token in said):
        raise ValueError(f"tokens are no numbers of the model's {vocabulary} tokens")
    return tuple(said)


def _log_probs(said: Any, tokens: tuple[int, ...] | None) -> tuple[float, ...] | None:
    """The log-prob of each token, if there is a usable one for each."""
    values = said.get("token_logprobs") if isinstance(said, Mapping) else None
    if tokens is None or not isinstance(values, list) or len(values) != len(tokens):
        return None
    if not all(type(value) in (int, float) and LEAST_LOG_PROB <= value <= MOST_LOG_PROB for value in values):
        return None
    return tuple(map(float, values))
