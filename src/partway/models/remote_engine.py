"""An engine over HTTP: any server with an OpenAI-style completions endpoint.

`vllm serve`, `transformers serve`, llama.cpp and Ollama have one.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Self

from partway.errors import ConfigError, EngineError
from partway.execution import PYTHON, Programs
from partway.models.completions_client import Choice, CompletionsClient, Refusal, call_seed
from partway.models.engine import Draw, Request
from partway.models.prompts import PLAIN, Prompt
from partway.models.settings import SamplingSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

ANOTHER_PROBLEM = re.compile(r"(?<=\n)(?:[^\S\n]*|#[^\n]*)\n")  # a blank line or a comment begins it
REQUEST_AT_FAULT = (400, 413, 422)  # statuses; with any other the server refuses whatever it is asked


class RemoteEngine:
    """Completes beginnings of solutions with a model behind `URL/completions`, a few problems at a time.

    Several addresses, with commas between them, share the work; one that is gone leaves it to the others.

    Every call has its own seed, made from the seed, the request and the number of its first sample. Whether
    equal seeds give equal samples is up to the server.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        prompt: Prompt | None = None,
        programs: Programs = PYTHON,
        concurrency: int = 8,
        retries: int = 6,
        timeout: float = 300.0,
        extra_body: Mapping[str, Any] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if concurrency < 1:
            raise ConfigError(f"concurrency is {concurrency}, expected at least 1; try 8")
        self.prompt = prompt or PLAIN
        self.programs = programs
        self.concurrency = concurrency
        self.clients = [
            CompletionsClient(
                one.strip(),
                model=model,
                extra_body=extra_body,
                connections=concurrency,
                retries=retries,
                timeout=timeout,
                sleep=sleep,
            )
            for one in url.split(",")
        ]
        self._under_way = dict.fromkeys(range(len(self.clients)), 0)
        self._gone: set[int] = set()  # servers that gave up on a call after all its retries
        self._choosing = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        for client in self.clients:
            client.close()

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Draw]]:
        """For every request its distinct draws; their counts sum to the request's count."""
        draws = dict(self.stream(requests, settings, seed))
        return [draws[index] for index in range(len(requests))]

    def update(self, weights: PreTrainedModel, version: int) -> None:
        """Nothing: a server draws with its own weights."""

    def stream(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> Iterator[tuple[int, list[Draw]]]:
        """Pairs of a request's index and its draws, as they are completed.

        After an error no new request is begun, those under way are handed over, then the error is raised.
        """
        todo: SimpleQueue[int] = SimpleQueue()
        done: SimpleQueue[tuple[int, list[Draw] | Exception] | None] = SimpleQueue()
        stopping = Event()
        for index in range(len(requests)):
            todo.put(index)

        def work() -> None:
            while not stopping.is_set():
                try:
                    index = todo.get_nowait()
                except Empty:
                    break
                try:
                    done.put((index, self._draws(requests[index], settings, seed)))
                except Exception as error:  # raised again in the caller's thread
                    stopping.set()
                    done.put((index, error))
            # One for each worker: when all have come, nothing is under way.
            done.put(None)

        workers = min(self.concurrency, len(requests))
        for _ in range(workers):
            Thread(target=work, daemon=True).start()  # as daemons they do not hold up an interrupted program
        failure: Exception | None = None
        try:
            while workers:
                match done.get():
                    case None:
                        workers -= 1
                    case index, list() as draws:
                        yield index, draws
                    case _, error:
                        failure = failure or error
        finally:
            stopping.set()
        if failure is not None:
            raise failure

    def _draws(self, request: Request, settings: SamplingSettings, seed: int) -> list[Draw]:
        prefix = "".join(f"{step}\n" for step in request.prefix.steps)
        prompt = self.prompt.text(request.problem.question) + prefix
        completions: list[tuple[str, bool]] = []
        while len(completions) < request.count:
            own_seed = call_seed(seed, request.problem.id, prefix, len(completions))
            choices = self._ask(prompt, request.count - len(completions), settings, own_seed)
            completions += (cut_completion(c.text, c.finished, self.programs) for c in choices)
        return [
            Draw.of(request.prefix, completion, count, finished)
            for (completion, finished), count in Counter(completions).items()
        ]

    def _ask(self, prompt: str, count: int, settings: SamplingSettings, seed: int) -> list[Choice]:
        """Ask the server with the fewest calls under way; if it is gone or refuses this, the next."""
        refused: dict[int, Refusal] = {}
        while True:
            with self._choosing:
                here = self._under_way.keys() - self._gone - refused.keys()
                if not here:
                    raise next(iter(refused.values()))
                number = min(here, key=self._under_way.__getitem__)
                self._under_way[number] += 1
            try:
                return self.clients[number].complete(prompt, count, settings, seed)
            except EngineError as error:
                if isinstance(error, Refusal) and error.status in REQUEST_AT_FAULT:
                    refused[number] = error
                    continue
                with self._choosing:
                    # The last server's own error says more than that there is none left.
                    if not self._under_way.keys() - self._gone - {number}:
                        raise
                    self._gone.add(number)
            finally:
                with self._choosing:
                    self._under_way[number] -= 1


def cut_completion(text: str, finished: bool, programs: Programs = PYTHON) -> tuple[str, bool]:
    """The solution at the beginning of what a model wrote, and whether it is finished.

    It ends where the language says, or before a blank line or a comment, which begin another problem.

    >>> cut_completion("answer = 2\\n\\n# Another question?\\nanswer = 3", finished=False)
    ('answer = 2\\n', True)
    >>> cut_completion("n0 = 1\\nanswer = max(n0,\\n", finished=False)
    ('n0 = 1\\nanswer = max(n0,\\n', False)
    """
    text = text.lstrip("\n")
    closed = f"{text}\n" if finished and text and not text.endswith("\n") else text
    another = ANOTHER_PROBLEM.search(closed)
    ends = [end for end in (programs.end(closed), another and another.start()) if end is not None]
    return (closed[: min(ends)], True) if ends else (text, finished)
