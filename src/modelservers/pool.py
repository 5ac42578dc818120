"""Several servers as one: a request goes to the least busy, and on to another if that one fails.

A server that fails is left alone for a while and then looked at again: it is used once it answers and has the
current weights. With none left, whoever asks waits, and gives up after `patience` seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Condition
from typing import Any, TypeVar

from modelservers.calls import Calls, Trouble, shortened
from modelservers.kinds import Asked, Published, Server, identify
from partway.errors import EngineError
from partway.models.engine import SamplingSettings
from straightline.parsing import MAX_CHARACTERS

T = TypeVar("T")

AT_ONCE = 32  # requests to one server; it batches what it has
MOST_PER_CALL = 128  # the `n` that large providers accept
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds before a server that failed is tried again
REQUEST_AT_FAULT = (400, 413, 422)  # statuses; with another server it may be right
KEY_AT_FAULT, NAME_AT_FAULT = (401, 403), (404, 405)  # the server refuses whatever it is asked
FIRST_ERRORS = 3  # with status 500, before its first answer: the server cannot do what it is asked
ABORTED = ("abort", "error")  # how servers say that they gave up a completion
LEAST_LOG_PROB, MOST_LOG_PROB = -1e5, 1e-3  # vLLM says -9999 for nothing; a rounded 0 may be above it


@dataclass(frozen=True, slots=True)
class Reply:
    """One completion as the server gave it; `finished` unless it was cut off by length.

    `tokens` and their `log_probs` are there if the server says them.
    """

    text: str
    finished: bool
    tokens: tuple[int, ...] | None = None
    log_probs: tuple[float, ...] | None = None


@dataclass
class Work:
    """What a server did since it was last asked about it."""

    samples: int = 0
    tokens: int = 0
    failures: int = 0
    busy: float = 0.0  # seconds with at least one request under way


@dataclass
class Endpoint:
    """A server: alive or not, with which weights, and how much it has to do.

    Whoever changes one of the marks holds the pool's lock. `model` is the name to ask for, `extra_body` what
    to add to every request.
    """

    calls: Calls
    model: str | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    server: Server | None = None  # once it was identified
    weights: Published | None = None
    before: Published | None = None  # the weights before these, which a slow request may still name
    is_live: bool = False
    is_closed: bool = False  # no new requests: weights are being loaded, or it is being looked at
    in_flight: int = 0  # requests
    load: int = 0  # samples they ask for
    failures: int = 0  # in a row
    has_answered: bool = False
    retry_at: float = 0.0
    reason: str = "not asked yet"
    per_call: int = MOST_PER_CALL  # lowered to what the server turns out to give
    answers_as: str | None = None  # the model it says it answers with
    work: Work = field(default_factory=Work)
    _since: float = 0.0

    @property
    def url(self) -> str:
        """Where the server is."""
        return self.calls.root

    @property
    def kind(self) -> Server:
        """Which kind of server it is, once it was identified."""
        assert self.server is not None, "a server is asked only after it was identified"
        return self.server

    def complete(
        self, asked: Asked, wanted: int, settings: SamplingSettings, seed: int
    ) -> tuple[list[Reply], Published | None]:
        """At least one and at most `wanted` completions, and the weights they were drawn with."""
        weights = self.weights
        count = min(wanted, self.per_call)
        body = self.kind.body(asked, count, settings, seed, weights) | dict(self.extra_body)
        try:
            said = self.calls.post("/v1/completions", body)
        except Trouble as trouble:
            if count == 1 or trouble.status not in (400, 422):
                raise
            self.per_call = 1  # perhaps it only minds being asked for several
            return self.complete(asked, wanted, settings, seed)
        written = completions(said, count, settings.max_completion_length, asked.vocabulary)
        if weights is None:
            self._check_model(said.get("model"))
        self.per_call = min(self.per_call, len(written)) if len(written) < count else self.per_call
        return written, weights

    def _check_model(self, name: Any) -> None:
        """Refuse a server that goes on with another model: results would be those of neither."""
        before, self.answers_as = self.answers_as, name if isinstance(name, str) else self.answers_as
        if before not in (None, self.answers_as):
            raise EngineError(
                f"{self.url}: it answered as {shortened(before or '', 60)} and now as {shortened(name, 60)}; "
                "samples of two models do not go together, start again with the one you mean"
            )

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

    def is_hopeless(self, trouble: Trouble) -> bool:
        """Whether it fails from the first request on; one that is not ready yet says 503, or nothing."""
        return trouble.status == 500 and not self.has_answered and self.failures >= FIRST_ERRORS - 1

    def failed(self, trouble: Trouble) -> None:
        """Ask it nothing for a while, a longer one each time, or as long as it says."""
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**self.failures)
        self.is_live = False
        self.reason = str(trouble)
        self.retry_at = time.monotonic() + max(pause, trouble.wait)
        self.failures += 1
        self.work.failures += 1


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
                # The name of weights of ours is one that it has lost, and is given again.
                is_name = trouble.status in NAME_AT_FAULT and endpoint.weights is None
                is_all = is_name or trouble.status in KEY_AT_FAULT or endpoint.is_hopeless(trouble)
                if is_all or trouble.status in REQUEST_AT_FAULT:
                    refused[endpoint.url] = trouble
                if trouble.status not in REQUEST_AT_FAULT and not (is_all and self.live == [endpoint]):
                    self.note_failure(endpoint, trouble)
            # Also Ctrl-C: what was begun must end, or whoever drains this server waits for ever.
            except BaseException:
                self._give_back(endpoint, size)
                raise
            else:
                self._give_back(endpoint, size, answered=True)
                return answer

    def each(self, act: Callable[[Endpoint], None]) -> None:
        """Do something with every live server at the same time; meanwhile it is asked nothing new."""
        self._with(self.live, act)

    def look(self) -> None:
        """Look at every server that is not live, all at the same time, whenever it was tried last."""
        self._with([e for e in self.endpoints if not e.is_live], self._look_at)

    def stop(self) -> None:
        """Let nobody wait any more."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def reasons(self) -> str:
        """Why servers are not live, each."""
        return "; ".join(f"{endpoint.url}: {endpoint.reason}" for endpoint in self.endpoints)

    def work(self) -> dict[str, Work]:
        """What each server did since this was last asked, by its address."""
        with self._changed:
            return {endpoint.url: endpoint.handed_over() for endpoint in self.endpoints}

    def drain(self, endpoint: Endpoint) -> None:
        """Wait until a server, which is asked nothing new, has answered what it was asked."""
        with self._changed:
            self._changed.wait_for(lambda: endpoint.in_flight == 0)

    def note_failure(self, endpoint: Endpoint, trouble: Trouble) -> None:
        """A server has failed; many requests fail with it, and one line says so."""
        with self._changed:
            if endpoint.is_live:
                self._fail(endpoint, trouble)
            self._changed.notify_all()

    def _take(self, size: int, refused: dict[str, Trouble]) -> Endpoint:
        """The least busy server that has not refused this; if there is none, the next that comes back."""
        while True:
            with self._changed:
                if self._is_stopped:
                    raise EngineError("the engine was closed, so its servers are no longer asked")
                if refused and all(e.url in refused for e in self.live):
                    url, trouble = next(iter(refused.items()))
                    raise EngineError(f"{url}: {trouble}")
                now = time.monotonic()
                due = (e for e in self.endpoints if not e.is_live and not e.is_closed and e.retry_at <= now)
                if (away := next(due, None)) is None:
                    free = [e for e in self.live if not e.is_closed and e.in_flight < AT_ONCE]
                    if free := [e for e in free if e.url not in refused]:
                        endpoint = min(free, key=lambda e: e.load)
                        endpoint.begin(size)
                        return endpoint
                    self._wait(now)
                    continue
                away.is_closed = True
            # Without the lock, as this takes seconds; the mark keeps the others away.
            self._alone(away, self._look_at)

    def _wait(self, now: float) -> None:
        """Wait until something changes or a server is due; gives up when none was live for too long."""
        if self.live or any(e.is_closed for e in self.endpoints):
            # Not longer: meanwhile a server that was away may become due.
            self._changed.wait(1.0)
            return
        if self._alone_since is None:
            self._alone_since = now
        if now - self._alone_since > self.patience:
            raise EngineError(f"no server answered for {self.patience:g} s ({self.reasons()})")
        self._changed.wait(max(0.01, min(1.0, min(e.retry_at for e in self.endpoints) - now)))

    def _with(self, endpoints: Sequence[Endpoint], act: Callable[[Endpoint], None]) -> None:
        with self._changed:
            free = [endpoint for endpoint in endpoints if not endpoint.is_closed]
            for endpoint in free:
                endpoint.is_closed = True
        with ThreadPoolExecutor(len(self.endpoints)) as executor:
            list(executor.map(lambda endpoint: self._alone(endpoint, act), free))

    def _look_at(self, endpoint: Endpoint) -> None:
        endpoint.server = identify(endpoint.calls, endpoint.model)
        self._prepare(endpoint)

    def _alone(self, endpoint: Endpoint, act: Callable[[Endpoint], None]) -> None:
        """Do something with a server that is closed to others meanwhile; then it is live, or has failed."""
        trouble: Trouble | None = None
        try:
            act(endpoint)
        except Trouble as error:
            trouble = error
        finally:
            with self._changed:
                endpoint.is_closed = False
                if trouble is None:
                    endpoint.is_live = True  # only an answer shows more: patience goes on until then
                else:
                    self._fail(endpoint, trouble)
                self._changed.notify_all()

    def _give_back(self, endpoint: Endpoint, size: int, *, answered: bool = False) -> None:
        with self._changed:
            endpoint.end(size)
            if answered:
                if endpoint.failures:
                    self._say(f"{endpoint.url} answers again")
                endpoint.failures, endpoint.has_answered, self._alone_since = 0, True, None
            self._changed.notify_all()

    def _fail(self, endpoint: Endpoint, trouble: Trouble) -> None:
        is_news = endpoint.failures == 0
        endpoint.failed(trouble)
        if is_news and self.live:
            self._say(f"{endpoint.url}: {trouble}; its requests go to the others")
        elif is_news and all(e.failures for e in self.endpoints):
            self._say(f"no server answers ({self.reasons()}); waiting up to {self.patience:g} s for one")


def completions(said: Any, asked: int, longest: int, vocabulary: int) -> list[Reply]:
    """Between one and `asked` completions of at most `longest` tokens; a `Trouble` for anything else.

    `vocabulary` is how many tokens the model has: a number beyond them would be lost in the text.
    """
    try:
        choices = said["choices"]
        # One more than was asked for is enough to see that there are too many.
        read = [_choice(choice, longest, vocabulary) for choice in choices[: asked + 1]]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Trouble(f"expected choices with texts ({type(error).__name__}: {str(error)[:80]})") from None
    if not 1 <= len(read) <= asked:
        raise Trouble(f"{len(choices)} completions came and {asked} were asked for")
    return read


def _choice(said: Mapping[str, Any], longest: int, vocabulary: int) -> Reply:
    """What a server says about one completion; of an endless text only as much as is ever parsed."""
    text = said["text"]
    if not isinstance(text, str):
        raise TypeError("the text of a completion is not text")
    reason = said.get("finish_reason")
    if reason in ABORTED:
        raise ValueError(f"a completion was given up ({reason})")
    is_whole = reason != "length" and len(text) <= MAX_CHARACTERS
    half_pairs_replaced = text[:MAX_CHARACTERS].encode("utf-8", "replace").decode()
    tokens = _tokens(said.get("token_ids"), longest, vocabulary)
    tokens = None if text and not tokens else tokens  # it has a text, so these are not all
    return Reply(half_pairs_replaced, is_whole, tokens, _log_probs(said.get("logprobs"), tokens))


def _tokens(said: Any, longest: int, vocabulary: int) -> tuple[int, ...] | None:
    if not isinstance(said, list) or not vocabulary:
        return None
    if len(said) > longest + 1:
        raise ValueError(f"{len(said)} tokens came and {longest} were asked for")
    if not all(type(token) is int and 0 <= token < vocabulary for token in said):
        raise ValueError(f"tokens that are not among the model's {vocabulary} tokens")
    return tuple(said)


def _log_probs(said: Any, tokens: tuple[int, ...] | None) -> tuple[float, ...] | None:
    """The log-prob of each token, if there is a usable one for each."""
    values = said.get("token_logprobs") if isinstance(said, Mapping) else None
    if tokens is None or not isinstance(values, list) or len(values) != len(tokens):
        return None
    if not all(type(value) in (int, float) and LEAST_LOG_PROB <= value <= MOST_LOG_PROB for value in values):
        return None
    return tuple(map(float, values))
