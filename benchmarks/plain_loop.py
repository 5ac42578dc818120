"""The straightforward training loop that `benchmarks train` compares with: what one would write first.

`generate` on left-padded prompts, a forked process for each program, one padded row for each target through
the stock model; rows of like length go together. It keeps the same buffers and minimises the same loss. Only
one thing it does not do as one would: the processes run the problem's reference in place of each sample, for
they are no sandbox.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmarks.batching import IGNORED, batches_by_length, generation_config, left_padded, right_padded
from partway.learning.token_tree import Targets
from partway.models.engine import Engine, SamplingSettings
from partway.models.text import Codec
from partway.problem import Problem
from partway.sample import Request, Sample
from partway.training import SelfSamplingTrainer

ROWS = 32  # of generation and of learning at a time
SECONDS_PER_PROGRAM = 4.0


class PlainEngine(Engine):
    """Completes with `model.generate`."""

    def __init__(self, model: Any, codec: Codec) -> None:
        self.model = model
        self.codec = codec

    def update(self, weights: Any, version: int) -> None:
        """Generate with this model from now on."""
        self.model = weights

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Sample]]:
        """The samples of each request, each sample on its own."""
        torch.manual_seed(seed)
        size = max(1, ROWS // max(request.count for request in requests))
        drawn: dict[int, list[Sample]] = {}
        for batch in batches_by_length([len(self._prompt(request)) for request in requests], size):
            drawn |= zip(batch, self._generate([requests[place] for place in batch], settings), strict=True)
        return [drawn[place] for place in range(len(requests))]

    def _prompt(self, request: Request) -> list[int]:
        return self.codec.prompt(request.problem.question) + self.codec.steps(request.prefix)

    def _generate(self, requests: Sequence[Request], settings: SamplingSettings) -> Iterator[list[Sample]]:
        padded = left_padded([self._prompt(request) for request in requests], self.codec.pad_id)
        rows = {key: value.to(self.model.device) for key, value in padded.items()}
        count = requests[0].count
        config = generation_config(settings, self.codec, count)
        output: Tensor = self.model.generate(**rows, generation_config=config)
        completions = output[:, rows["input_ids"].shape[1] :].tolist()
        for number, request in enumerate(requests):
            own = completions[number * count : (number + 1) * count]
            yield [self._draw(request, tokens) for tokens in own]

    def _draw(self, request: Request, tokens: list[int]) -> Sample:
        finished = self.codec.eos_id in tokens
        end = tokens.index(self.codec.eos_id) if finished else len(tokens)
        return request.sample(self.codec.decode(tokens[:end]), finished=finished, tokens=tokens[: end + 1])


def execute_each(references: Sequence[str]) -> list[str]:
    """Run each reference in a forked process of its own; returns what each answered, as text."""
    context = multiprocessing.get_context("fork")
    answers = []
    for text in references:
        reader, writer = context.Pipe(duplex=False)
        process = context.Process(target=_execute, args=(text, writer))
        process.start()
        writer.close()
        answers.append(reader.recv() if reader.poll(SECONDS_PER_PROGRAM) else "no answer")
        process.join()  # one after the other, as one would write it first
        reader.close()
    return answers


def _execute(text: str, writer: Connection) -> None:
    scope: dict[str, Any] = {}
    exec(text, scope)
    writer.send(repr(scope.get("answer")))


class PlainTrainer(SelfSamplingTrainer):
    """The trainer with each of its three parts replaced by the straightforward one."""

    def explore(self, problems: Sequence[Problem]) -> None:
        self.engine = PlainEngine(self.model, self.codec)
        super().explore(problems)  # its own executing, for the verdicts, costs next to nothing
        with self.clock.span("executing"):
            references = [problem.reference.text for problem in problems if problem.reference]
            execute_each([text for text in references for _ in range(self.args.samples_per_problem)])

    def learn(self, model: Any, problems: Sequence[Problem]) -> Tensor:
        with self.clock.span("learning"):
            model.train()
            found = [targets for problem in problems if (targets := self.targets(problem))]
            pairs = [(targets, target) for targets in found for target in targets.sequences]
            loss = torch.zeros(())
            lengths = [len(targets.prompt) + len(target) for targets, target in pairs]
            for batch in batches_by_length(lengths, ROWS):
                part = self._loss(model, [pairs[place] for place in batch]) / len(problems)
                self.accelerator.backward(part)
                loss += part.detach().cpu()
            return loss

    def _loss(self, model: Any, pairs: Sequence[tuple[Targets, tuple[int, ...]]]) -> Tensor:
        padded = right_padded([(targets.prompt, target) for targets, target in pairs], self.codec.pad_id)
        rows = {key: value.to(model.device) for key, value in padded.items()}
        labels = rows.pop("labels")
        logits = model(**rows).logits[:, :-1].float()
        return cross_entropy(
            logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORED, reduction="sum"
        )
