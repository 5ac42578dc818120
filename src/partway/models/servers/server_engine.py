"""An engine of servers: draws on other machines, with the weights that are trained here.

Late, quantised or remote samples bias nothing: each is executed, judged against the buffer as it then is, and
scored under the weights that learn from it. So servers are told of new weights now and then, and whatever
they answer counts; what they do not answer is asked of another.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from partway.errors import ConfigError, EngineError, PartwayError
from partway.execution import Programs
from partway.models.completions_client import Choice, call_seed
from partway.models.engine import Draw, Request
from partway.models.loading import LanguageModel
from partway.models.local_engine import end_ids
from partway.models.servers.calls import Calls, Trouble
from partway.models.servers.endpoint import Endpoint
from partway.models.servers.kinds import Asked
from partway.models.servers.pool import AT_ONCE, Pool
from partway.models.servers.published import Form, Published, Shelf, is_adapted, log_prob
from partway.models.settings import SamplingSettings
from partway.models.text import PROBE, Codec

if TYPE_CHECKING:
    from transformers import PreTrainedModel

PROBING = SamplingSettings(temperature=0.0, max_completion_length=8)
MOST_DIFFERENCE = 0.1  # of a token's log-prob, between float32 here and bfloat16 there
LONGEST_CALL = 300.0  # seconds for one answer; a server that takes longer hangs

WeightSync = Literal["auto", "full", "lora", "none"]


@dataclass(frozen=True)
class Together:
    """Several processes that share the servers: the first gives them weights, the others are told."""

    is_first: bool = True
    from_first: Callable[[Any], Any] = lambda value: value


class ServerEngine:
    """Completes beginnings of solutions at `urls`, with weights put where `directory_of` says.

    `patience` is how many seconds it waits when no server answers, `call_timeout` how many for one answer;
    `say` tells the user what happens.
    """

    def __init__(
        self,
        urls: Sequence[str],
        language_model: LanguageModel,
        *,
        programs: Programs,
        directory_of: Callable[[int], Path],
        weight_sync: WeightSync = "auto",
        patience: float = 600.0,
        call_timeout: float = LONGEST_CALL,
        say: Callable[[str], None] = print,
        together: Together | None = None,
    ) -> None:
        self.codec: Codec = language_model.codec
        self.programs = programs
        self.weight_sync = weight_sync
        self.together = together or Together()
        self.current: Published | None = None
        self._ends = end_ids(language_model)
        self._vocabulary = language_model.model.config.get_text_config(decoder=True).vocab_size
        self._say = say
        self._doubted: set[str] = set()
        self._shelf = Shelf(directory_of, self.codec.tokenizer)
        endpoints = [Endpoint(Calls(url, timeout=call_timeout, connections=AT_ONCE + 4)) for url in urls]
        self.pool = Pool(endpoints, patience=patience, prepare=self._bring_up_to_date, say=say)

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Draw]]:
        """For every request its distinct draws; their counts sum to the request's count."""
        draws = dict(self.stream(requests, settings, seed))
        return [draws[index] for index in range(len(requests))]

    def stream(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> Iterator[tuple[int, list[Draw]]]:
        """Pairs of a request's index and its draws, as they are completed."""
        workers = min(max(1, len(requests)), AT_ONCE * len(self.pool.endpoints))
        executor = ThreadPoolExecutor(workers)
        try:
            futures = {
                executor.submit(self._draws, request, settings, seed): index
                for index, request in enumerate(requests)
            }
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            executor.shutdown(wait=False, cancel_futures=True)

    def update(self, weights: PreTrainedModel, version: int) -> None:
        """Let all servers draw with these weights from now on."""
        if self.weight_sync == "none" or (self.current is not None and self.current.version == version):
            return
        failure = None
        if self.together.is_first:
            try:
                self._publish(weights, version)
            except PartwayError as error:
                failure = error  # the other processes are waiting to hear of it
        having = [endpoint.url for endpoint in self.pool.live if endpoint.weights == self.current]
        self.current, having, failure = self.together.from_first((self.current, having, failure))
        if failure is not None:
            raise failure
        if not self.together.is_first:
            self.pool.tell(having, self._has_current, f"it did not take the weights of step {version}")

    def _publish(self, weights: PreTrainedModel, version: int) -> None:
        if not self.pool.live:
            self.pool.look()
            self.pool.ask(lambda endpoint: None)  # what they take is known when the first one answers
        is_begun, had_live, before = self.current is not None, bool(self.pool.live), self.current
        self.current = self._shelf.publish(weights, version, self._form(weights))
        self.pool.each(self._load)
        if had_live and not is_begun and not self.pool.live:  # they answer, but this will not do
            raise EngineError(f"no server takes weights ({self.pool.reasons()})")
        if before is not None:
            self._shelf.remove_before(before.version)  # a slow request may still name the one before
        for endpoint in self.pool.live:
            if endpoint.kind.tells_log_probs:
                self._compare(endpoint, weights)

    def _compare(self, endpoint: Endpoint, weights: PreTrainedModel) -> None:
        """Say so if a server's log-probs are not those of the weights here, whatever version it says it has.

        Nothing worse follows: its samples are late at most.
        """
        asked = Asked(PROBE.text, self.codec.steps(PROBE), self._ends, self._vocabulary)
        try:
            (written,), _ = endpoint.complete(asked, 1, PROBING, 0)
        except (Trouble, ValueError):
            return  # the next request will show what is wrong
        if written.tokens is None or written.log_probs is None or endpoint.url in self._doubted:
            return
        difference = abs(sum(written.log_probs) - log_prob(weights, asked.tokens, written.tokens))
        if difference > MOST_DIFFERENCE * max(1, len(written.tokens)):
            self._doubted.add(endpoint.url)
            self._say(
                f"{endpoint.url}: the log-prob of {len(written.tokens)} tokens is {difference:.2f} off from "
                "the model's here: it draws with other weights than it was given; see docs/servers.md"
            )

    def _has_current(self, endpoint: Endpoint) -> None:
        endpoint.weights = self.current

    def meter(self, seconds: float) -> dict[str, float]:
        """How busy each server was in the last so many seconds, and what it gave this process."""
        line: dict[str, float] = {"servers/live": len(self.pool.live)}
        for url, work in self.pool.work().items():
            name = f"servers/{url.partition('//')[2]}"
            line[f"{name}/samples"] = work.samples
            line[f"{name}/tokens_per_second"] = work.tokens / seconds
            line[f"{name}/busy"] = work.busy / seconds
            line[f"{name}/failures"] = work.failures
        return line

    def rest(self) -> None:
        """Remove the weights that were put down for servers and hang up; the next call begins anew."""
        if self.current is not None and self.together.is_first:
            self._shelf.remove_before(self.current.version + 1)
        self.current = None
        for endpoint in self.pool.endpoints:
            endpoint.calls.close()

    def close(self) -> None:
        """Ask nothing more, give up what is asked, and rest."""
        self.pool.stop()
        self.rest()

    def _form(self, weights: PreTrainedModel) -> Form:
        """Whole weights or the adapter alone: what all servers take."""
        if self.weight_sync != "auto":
            form: Form = "lora" if self.weight_sync == "lora" else "full"
            if form == "lora" and not is_adapted(weights):
                raise ConfigError("weight_sync is lora but no adapter is trained; set use_peft, or full")
            return form
        live = self.pool.live
        takes_adapters = bool(live) and all("lora" in endpoint.kind.forms for endpoint in live)
        return "lora" if is_adapted(weights) and takes_adapters else "full"

    def _load(self, endpoint: Endpoint) -> None:
        """Give a server the current weights; without routes for it, it is the user's turn."""
        current = self.current  # another thread may publish newer ones meanwhile
        assert current is not None, "weights were published"
        kind = endpoint.kind
        if current.form not in kind.forms:
            raise Trouble(f"{kind.name} takes no {current.form} weights; {kind.advice()}")
        if current.form in kind.in_place:
            self.pool.drain(endpoint)
        kind.load(current)
        if endpoint.before is not None:
            kind.drop(endpoint.before)
        endpoint.before, endpoint.weights = endpoint.weights, current

    def _bring_up_to_date(self, endpoint: Endpoint) -> None:
        endpoint.weights = endpoint.before = None
        if self.weight_sync == "none":
            self._check_goes_on(endpoint)
        if self.current is None:
            return
        if self.together.is_first:
            self._load(endpoint)
        elif endpoint.kind.has(self.current):
            endpoint.weights = self.current
        else:
            raise Trouble(f"it does not have the weights of step {self.current.version} yet")

    def _check_goes_on(self, endpoint: Endpoint) -> None:
        """Ask nothing of a server that lets requests wait for ever; one that takes weights goes on then."""
        if endpoint.kind.is_paused():
            raise Trouble(
                f"it is paused and lets requests wait; to go on: curl -X POST {endpoint.url}/resume"
            )

    def _draws(self, request: Request, settings: SamplingSettings, seed: int) -> list[Draw]:
        """Every sample that was asked for, however many calls and servers it takes."""
        asked = self._asked(request)
        drawn: Counter[Draw] = Counter()

        def call(endpoint: Endpoint) -> list[Draw]:
            """What one server gives of the samples that are missing."""
            number = drawn.total()
            own_seed = call_seed(seed, request.problem.id, asked.text, number)
            written, weights = endpoint.complete(asked, request.count - number, settings, own_seed)
            version = None if weights is None else weights.version
            read = (self._draw(request, one) for one in written)
            draws = [replace(draw, weights=version, endpoint=endpoint.url) for draw in read]
            endpoint.work.samples += len(draws)
            endpoint.work.tokens += sum(draw.tokens for draw in draws)
            return draws

        while (missing := request.count - drawn.total()) > 0:
            drawn.update(self.pool.ask(call, missing))
        return [replace(draw, count=count) for draw, count in drawn.items()]

    def _asked(self, request: Request) -> Asked:
        prefix = "".join(f"{step}\n" for step in request.prefix.steps)
        text = self.codec.question.text(request.problem.question) + prefix
        tokens = self.codec.prompt(request.problem.question) + self.codec.steps(request.prefix)
        return Asked(text, tokens, self._ends, self._vocabulary)

    def _draw(self, request: Request, written: Choice) -> Draw:
        """A draw of what a server wrote, cut where a solution ends, as the sampling tree would have."""
        if written.tokens is None:
            text, finished = self._cut(written.text, written.finished)
            return Draw.of(request.prefix, text, 1, finished, tokens=len(self.codec.encode(text)))
        tokens = [token for token in written.tokens if token not in self._ends]
        whole = self.codec.decode(tokens)
        text, finished = self._cut(whole, written.finished)
        is_whole = text == whole
        count = len(tokens) if is_whole else self._tokens_of(tokens, len(text))
        drawn = len(written.tokens) if is_whole else count  # with the token that ends it
        log_prob = None if written.log_probs is None else sum(written.log_probs[:drawn])
        return Draw.of(request.prefix, text, 1, finished, log_prob, count)

    def _cut(self, text: str, finished: bool) -> tuple[str, bool]:
        ends = [end for end in (self.programs.end(text), self.codec.end_of_answer(text)) if end is not None]
        return (text[: min(ends)], True) if ends else (text, finished)

    def _tokens_of(self, tokens: Sequence[int], length: int) -> int:
        """How many tokens it takes to write so many characters."""
        # Characters are no sums over tokens: several tokens may spell one, so beginnings are decoded.
        return bisect_left(range(len(tokens)), length, key=lambda n: len(self.codec.decode(tokens[:n])))
