"""From what the command line says to something that draws samples: a model here or on a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from partway.errors import ConfigError, ModelError, ProblemError

if TYPE_CHECKING:
    from partway.execution import Programs
    from partway.models.engine import Engine
    from partway.models.few_shot import FewShotPrompt
    from partway.problem import Problem


@dataclass(frozen=True)
class Options:
    """What the command line of `partway evaluate` says."""

    model: str | None
    problems: str | None
    limit: int | None
    samples: int
    temperature: float
    top_p: float
    top_k: int
    max_completion_length: int
    ks: str | None
    seed: int
    answer_variable: str | None
    checker: str | None
    device: str | None
    engine: str | None
    few_shot: str | None
    shots: int
    concurrency: int
    extra_body: str | None
    out: str | None
    name: str | None
    counts: bool
    overwrite: bool

    @cached_property
    def programs(self) -> Programs:
        """The language and rules: the run's, if the model is one, unless the options say otherwise."""
        from partway.runs import programs_for

        model = None if self.engine else self.model
        return programs_for(model, {"answer_variable": self.answer_variable, "checker": self.checker})


def check_device(name: str | None) -> None:
    """Refuses a device that is not here, before a model is loaded for it."""
    import torch

    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"--device is {name!r}, which cannot be used ({reason}); try cpu") from error


@contextmanager
def opened_engine(options: Options, problems: list[Problem]) -> Iterator[tuple[Engine, str]]:
    """What draws the samples, and a text that changes when what it draws would."""
    if options.engine is None:
        yield _local_engine(options, problems)
        return
    from partway.evaluation.journal import key_of
    from partway.models.engines import open_engine

    prompt = _few_shot_prompt(options, problems)
    extra_body = _extra_body(options)
    with open_engine(
        options.model,
        url=options.engine,
        prompt=prompt,
        programs=options.programs,
        concurrency=options.concurrency,
        extra_body=extra_body,
    ) as engine:
        yield engine, key_of(options.engine, options.model, prompt, extra_body)


def _local_engine(options: Options, problems: list[Problem]) -> tuple[Engine, str]:
    if options.few_shot or options.extra_body:
        raise ConfigError("--few-shot and --extra-body are for remote models; add --engine URL")
    if options.model is None:
        raise click.UsageError("which model? Name a directory, a run, or a server with --engine URL")
    check_device(options.device)
    from partway.models.engines import load_engine
    from partway.training.preparation import model_digest

    engine = load_engine(options.model, programs=options.programs, device=options.device)
    room = engine.context_length
    for problem in problems:
        length = len(engine.codec.prompt(problem.question))
        if length >= room:
            raise ModelError(
                f"problem {problem.id}: a prompt of {length} tokens leaves no room in the context of "
                f"{room} tokens; leave it out or use a model with a longer context"
            )
    return engine, model_digest(engine.model)


def _few_shot_prompt(options: Options, problems: list[Problem]) -> FewShotPrompt:
    from partway.datasets import load_problems
    from partway.models.few_shot import FewShotPrompt

    if options.few_shot is None:
        return FewShotPrompt()
    examples = load_problems(options.few_shot, programs=options.programs)
    shown = {example.question for example in examples[: options.shots]}
    if both := [problem.id for problem in problems if problem.question in shown]:
        raise ProblemError(
            f"{options.few_shot}: problem {both[0]} is also to be solved; choose other examples"
        )
    return FewShotPrompt.of(examples, shots=options.shots)


def _extra_body(options: Options) -> dict[str, Any]:
    try:
        fields = json.loads(options.extra_body or "{}")
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise ConfigError(f"--extra-body is {options.extra_body!r}, expected a JSON object")
    return fields
