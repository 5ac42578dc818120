"""The straightforward training loop that `benchmarks train` compares with: what one would write first.

`generate` on left-padded prompts, a forked process for each program, one padded row for each target through
the stock model. It keeps the same buffers and minimises the same loss. Only one thing it does not do as one
would: the processes run the problem's reference in place of each sample, for they are no sandbox.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig

from partway.models.engine import Draw, Request
from partway.models.settings import SamplingSettings
from partway.models.targets import Targets
from partway.problem import Problem
from partway.training import SelfSamplingTrainer

ROWS = 32  # of generation and of learning at a time
SECONDS_PER_PROGRAM = 4.0


class PlainEngine:
    """Completes with `model.generate`."""

    def __init__(self, trainer: SelfSamplingTrainer) -> None:
        self.model: Any = trainer.model
        self.codec = trainer.codec

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Draw]]:
        """The draws of each request, each sample on its own."""
        torch.manual_seed(seed)
        size = max(1, ROWS // max(request.count for request in requests))
        batches = [requests[start : start + size] for start in range(0, len(requests), size)]
        return [draws for batch in batches for draws in self._generate(batch, settings)]

    def _generate(self, requests: Sequence[Request], settings: SamplingSettings) -> Iterator[list[Draw]]:
        prompts = [
            self.codec.prompt(request.problem.question) + self.codec.steps(request.prefix)
            for request in requests
        ]
        count, width = requests[0].count, max(map(len, prompts))
        rows = torch.tensor([[self.codec.pad_id] * (width - len(prompt)) + prompt for prompt in prompts])
        mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        config = GenerationConfig(
            do_sample=True,
            temperature=settings.temperature,
            top_k=settings.top_k,
            top_p=settings.top_p,
            max_new_tokens=settings.max_completion_length,
            num_return_sequences=count,
            eos_token_id=self.codec.eos_id,
            pad_token_id=self.codec.pad_id,
        )
        output: Tensor = self.model.generate(
            rows.to(self.model.device), attention_mask=mask.to(self.model.device), generation_config=config
        )
        completions = output[:, width:].tolist()
        for number, request in enumerate(requests):
            own = completions[number * count : (number + 1) * count]
            yield [self._draw(request, tokens) for tokens in own]

    def _draw(self, request: Request, tokens: list[int]) -> Draw:
        finished = self.codec.eos_id in tokens
        end = tokens.index(self.codec.eos_id) if finished else len(tokens)
        return Draw.of(request.prefix, self.codec.decode(tokens[:end]), 1, finished)


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
        process.join()
        reader.close()
    return answers


def _execute(text: str, writer: Connection) -> None:
    scope: dict[str, Any] = {}
    exec(text, scope)
    writer.send(repr(scope.get("answer")))


class PlainTrainer(SelfSamplingTrainer):
    """The trainer with each of its three parts replaced by the straightforward one."""

    def explore(self, problems: Sequence[Problem]) -> None:
        self.engine = PlainEngine(self)  # type: ignore[assignment]
        super().explore(problems)

    def consider(self, draws: Sequence[tuple[Request, Draw]]) -> None:
        execute_each([request.problem.reference.text for request, _ in draws if request.problem.reference])
        super().consider(draws)  # for the verdicts, which costs next to nothing

    def learn(self, model: Any, problems: Sequence[Problem]) -> Tensor:
        with self.clock.span("learning"):
            model.train()
            found = [targets for problem in problems if (targets := self.targets(problem))]
            pairs = [(targets, target) for targets in found for target in targets.sequences]
            loss = torch.zeros(())
            for start in range(0, len(pairs), ROWS):
                part = -self._log_probs(model, pairs[start : start + ROWS]).sum() / len(problems)
                self.accelerator.backward(part)
                loss += part.detach().cpu()
            return loss

    def _log_probs(self, model: Any, pairs: Sequence[tuple[Targets, tuple[int, ...]]]) -> Tensor:
        rows = [[*targets.prompt, *target] for targets, target in pairs]
        width = max(map(len, rows))
        pad = self.codec.pad_id
        tokens = torch.tensor([row + [pad] * (width - len(row)) for row in rows], device=model.device)
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=model.device)
        log_probs = model(input_ids=tokens, attention_mask=mask).logits[:, :-1].float().log_softmax(-1)
        learned = torch.zeros_like(mask[:, 1:])
        for number, (targets, target) in enumerate(pairs):
            learned[number, len(targets.prompt) - 1 : len(targets.prompt) + len(target) - 1] = 1
        of_tokens: Tensor = log_probs.gather(2, tokens[:, 1:, None])[..., 0]
        return (of_tokens * learned).sum(1)
