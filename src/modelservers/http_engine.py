"""An engine that draws samples on servers, with their own weights or with those trained here.

Any server with an OpenAI-style completions endpoint will do: vLLM, SGLang, `transformers serve`, llama.cpp,
Ollama. Whether it can be given weights is its kind's to say. Questions are put as the model's tokenizer does,
if that is here, else as text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelservers.calls import Calls, Trouble
from modelservers.kinds import Asked
from modelservers.pool import AT_ONCE, Endpoint, Pool, Reply
from partway.errors import ConfigError
from partway.language import PYTHON, Language
from partway.models.engine import Engine, SamplingSettings
from partway.models.text import Prompt, plain_prompt
from partway.sample import Request, Sample

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from modelservers.weights import Handover, WeightSync
    from partway.models.text import Codec

LONGEST_CALL = 300.0  # seconds for one answer; a server that takes longer hangs
PATIENCE = 120.0  # seconds without an answer: limits of so many requests a minute have passed by then


class HttpEngine(Engine):
    """Completes beginnings of solutions at `urls`, `concurrency` requests at a time.

    `model` is the name it has there. `codec` puts questions as its tokenizer does; `ends` are the tokens that
    end its completions, of `vocabulary` ones. A `prompt` with examples takes the codec's place in wording
    questions; without a codec, it or the plain prompt is sent as text. With `weight_sync`, weights are put
    where `directory_of` says, and of several processes the first hands them over and `from_first` tells the
    others. `patience` is how many seconds it waits when no server answers, `call_timeout` how many for one
    answer; `say` tells the user what happens.

    Every call has its own seed, made from the seed, the request and the number of its first sample. Whether
    equal seeds give equal samples is up to the server.
    """

    is_shared = True

    def __init__(
        self,
        urls: Sequence[str],
        codec: Codec | None = None,
        *,
        ends: Sequence[int] = (),
        vocabulary: int | None = None,
        prompt: Prompt | None = None,
        language: Language = PYTHON,
        model: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        concurrency: int | None = None,
        weight_sync: WeightSync = "none",
        directory_of: Callable[[int], Path] | None = None,
        is_first: bool = True,
        from_first: Callable[[Any], Any] = lambda value: value,
        patience: float = PATIENCE,
        call_timeout: float = LONGEST_CALL,
        say: Callable[[str], None] = print,
    ) -> None:
        if concurrency is not None and concurrency < 1:
            raise ConfigError(f"concurrency is {concurrency}, expected at least 1; try 8")
        self.language = language
        self.codec = codec if codec is None or prompt is None else replace(codec, question=prompt)
        self.question = prompt or (plain_prompt(language) if codec is None else codec.question)
        # A model that was not trained on our prompt goes on with problems of its own.
        self.goes_on = codec is None or prompt is not None
        self.concurrency = concurrency or AT_ONCE * len(urls)
        self._ends, self._vocabulary = list(ends), vocabulary or 0
        if codec is not None and not ends:
            self._ends = [end for end in {codec.eos_id, codec.tokenizer.eos_token_id} if end is not None]
        if codec is not None and not vocabulary:
            self._vocabulary = len(codec.tokenizer)
        endpoints = [
            Endpoint(Calls(url, timeout=call_timeout, connections=AT_ONCE + 4), model, extra_body or {})
            for url in urls
        ]
        self.pool = Pool(endpoints, patience=patience, prepare=self._prepare, say=say)
        self.handover: Handover | None = None
        if weight_sync != "none":
            from modelservers.weights import Handover  # an evaluation needs no torch
            from partway.models.text import PROBE

            assert codec is not None, "who trains a model has its tokenizer"
            assert directory_of is not None, "weights are put somewhere"
            self.handover = Handover(
                self.pool,
                directory_of,
                codec.tokenizer,
                Asked(PROBE.text, codec.steps(PROBE), self._ends, (), self._vocabulary),
                weight_sync=weight_sync,
                is_first=is_first,
                from_first=from_first,
                say=say,
            )

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Sample]]:
        """For every request its distinct samples; their counts sum to the request's count."""
        samples = dict(self.stream(requests, settings, seed))
        return [samples[index] for index in range(len(requests))]

    def stream(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> Iterator[tuple[int, list[Sample]]]:
        """Pairs of a request's index and its samples, as they are completed.

        After an error no new request is begun, those under way are handed over, then the error is raised.
        """
        executor = ThreadPoolExecutor(min(max(1, len(requests)), self.concurrency))
        failure: BaseException | None = None
        try:
            futures = {
                executor.submit(self._samples, request, settings, seed): index
                for index, request in enumerate(requests)
            }
            for future in as_completed(futures):
                if future.cancelled():
                    continue
                if (error := future.exception()) is None:
                    yield futures[future], future.result()
                elif failure is None:
                    failure = error
                    for other in futures:
                        other.cancel()
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
        if failure is not None:
            raise failure

    def update(self, weights: PreTrainedModel, version: int) -> None:
        """Let all servers draw with these weights from now on, unless they keep their own."""
        if self.handover is not None:
            self.handover.update(weights, version)

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
        """Remove the weights written for servers and close connections; the next call opens new ones."""
        if self.handover is not None:
            self.handover.end()
        for endpoint in self.pool.endpoints:
            endpoint.calls.close()

    def close(self) -> None:
        """Ask nothing more, give up what is asked, and rest."""
        self.pool.stop()
        self.rest()

    def _prepare(self, endpoint: Endpoint) -> None:
        if self.handover is not None:
            self.handover.bring_up_to_date(endpoint)
        elif endpoint.kind.is_paused():  # one that is given weights goes on then
            raise Trouble(
                f"it is paused and lets requests wait; to go on: curl -X POST {endpoint.url}/resume"
            )

    def _samples(self, request: Request, settings: SamplingSettings, seed: int) -> list[Sample]:
        """Every sample that was asked for, however many calls and servers it takes."""
        asked = self._asked(request)
        drawn: Counter[Sample] = Counter()

        def call(endpoint: Endpoint) -> list[Sample]:
            """What one server gives of the samples that are missing."""
            number = drawn.total()
            own_seed = call_seed(seed, request.problem.id, asked.text, number)
            written, weights = endpoint.complete(asked, request.count - number, settings, own_seed)
            version = None if weights is None else weights.version
            read = (self._sample(request, one) for one in written)
            samples = [replace(sample, weights=version, endpoint=endpoint.url) for sample in read]
            endpoint.work.samples += len(samples)
            endpoint.work.tokens += sum(map(self._length, samples))
            return samples

        while (missing := request.count - drawn.total()) > 0:
            drawn.update(self.pool.ask(call, missing))
        return [replace(sample, count=count) for sample, count in drawn.items()]

    def _asked(self, request: Request) -> Asked:
        prefix = "".join(f"{step}\n" for step in request.prefix.steps)
        text = self.question.text(self.language.question(request.problem)) + prefix
        stops = self.language.instruction.stops if self.goes_on else ()
        if self.codec is None:
            return Asked(text, stops=stops)
        if self.question.is_markup and self.codec.bos_id is not None:
            text = text.removeprefix(self.codec.tokenizer.bos_token)  # who reads text begins it so itself
        tokens = self.codec.prompt(self.language.question(request.problem)) + self.codec.steps(request.prefix)
        vocabulary, source = 0 if self.goes_on else self._vocabulary, self.codec.tokenizer.name_or_path
        return Asked(text, tokens, self._ends, stops, vocabulary, source or None)

    def _sample(self, request: Request, written: Reply) -> Sample:
        """What a server wrote, cut where a solution ends, as the sampling tree would have."""
        if written.tokens is None or self.codec is None:
            text, finished = self._cut(written.text, written.finished)
            return request.sample(text, finished=finished)
        own = [token for token in written.tokens if token not in self._ends]
        whole = self.codec.decode(own)
        text, finished = self._cut(whole, written.finished)
        is_whole = text == whole
        count = len(own) if is_whole else self._tokens_of(own, len(text))
        drawn = len(written.tokens) if is_whole else count  # with the token that ends it
        log_prob = None if written.log_probs is None else sum(written.log_probs[:drawn])
        return request.sample(text, finished=finished, tokens=written.tokens[:drawn], log_prob=log_prob)

    def _length(self, sample: Sample) -> int:
        """How many tokens it has, as far as they can be counted here."""
        if sample.tokens or self.codec is None:
            return len(sample.tokens)
        return len(self.codec.encode(sample.completion))

    def _cut(self, text: str, finished: bool) -> tuple[str, bool]:
        end_of_answer = None if self.codec is None else self.codec.end_of_answer(text)
        text = text if end_of_answer is None else text[:end_of_answer]
        return cut_completion(
            text, finished or end_of_answer is not None, self.language, goes_on=self.goes_on
        )

    def _tokens_of(self, tokens: Sequence[int], length: int) -> int:
        """How many tokens it takes to write so many characters."""
        # Several tokens may spell one character, so beginnings are decoded.
        assert self.codec is not None, "who has tokens has a codec"
        decode = self.codec.decode
        return bisect_left(range(len(tokens)), length, key=lambda n: len(decode(tokens[:n])))


def cut_completion(
    text: str, finished: bool, language: Language = PYTHON, *, goes_on: bool = True
) -> tuple[str, bool]:
    """The solution at the beginning of what a model wrote, and whether it is finished.

    It ends where the language says. A model that `goes_on` with problems of its own begins another one with a
    blank line or a comment.

    >>> cut_completion("answer = 2\\n\\n# Another question?\\nanswer = 3", finished=False)
    ('answer = 2\\n', True)
    >>> cut_completion("n0 = 1\\nanswer = max(n0,\\n", finished=False)
    ('n0 = 1\\nanswer = max(n0,\\n', False)
    """
    if not goes_on:
        end = language.end(text)
        return (text, finished) if end is None else (text[:end], True)
    text = text.lstrip("\n")
    closed = f"{text}\n" if finished and text and not text.endswith("\n") else text
    comment = re.escape(language.instruction.comment.strip())
    another = re.search(rf"(?<=\n)(?:[^\S\n]*|{comment}[^\n]*)\n", closed)
    ends = [end for end in (language.end(closed), another and another.start()) if end is not None]
    return (closed[: min(ends)], True) if ends else (text, finished)


def call_seed(seed: int, *names: object) -> int:
    """A seed for one call among many: 31 bits, which every server takes."""
    return int.from_bytes(blake2b(repr((seed, *names)).encode(), digest_size=4).digest()) >> 1
