"""From what the command line says to something that draws samples: a model here or on a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import click

from partway.cli.options import (
    ANSWER_VARIABLE,
    CHAT_TEMPLATE,
    COLUMNS,
    DEVICE,
    LENGTH,
    SEED,
    TOP_K,
    TOP_P,
    given,
    option,
)
from partway.errors import ConfigError, ModelError, ProblemError

if TYPE_CHECKING:
    from partway.execution import Programs
    from partway.models.engine import Engine
    from partway.models.prompts import FewShotPrompt
    from partway.problem import Problem


@dataclass(frozen=True)
class EvaluateOptions:
    """What the command line of `partway evaluate` says."""

    model: str | None = given(click.argument("model", required=False, metavar="[MODEL_OR_RUN]"))
    problems: str | None = option(
        "--problems", metavar="FILE", help="The problems; without it, those a run was evaluated on."
    )
    columns: str | None = given(COLUMNS)
    limit: int | None = option(
        "--limit", type=click.IntRange(1), metavar="N", help="Only the first N problems."
    )
    samples: int = option(
        "--samples", default=100, show_default=True, metavar="N", help="Samples of every problem."
    )
    temperature: float = option("--temperature", default=0.8, show_default=True, help="Of these samples.")
    top_p: float = given(TOP_P)
    top_k: int = given(TOP_K)
    max_completion_length: int = given(LENGTH)
    ks: str | None = option(
        "--k", "ks", metavar="K,K,...", help="For pass@k and maj@k.  [default: 1,5,10,20,50 and N]"
    )
    seed: int = given(SEED)
    answer_variable: str | None = given(ANSWER_VARIABLE)
    checker: str | None = option(
        "--checker", help="What makes an answer right: default, exact, close, tests, MODULE:NAME."
    )
    chat_template: Literal["auto", "none"] = given(CHAT_TEMPLATE)
    device: str | None = given(DEVICE)
    engine: str | None = option(
        "--engine", metavar="URL,...", help="Ask servers, such as http://localhost:8000/v1, for samples."
    )
    few_shot: str | None = option(
        "--few-shot", metavar="FILE", help="Problems to show to the model as examples."
    )
    shots: int = option("--shots", default=4, show_default=True, help="How many examples to show.")
    concurrency: int = option(
        "--concurrency", default=8, show_default=True, help="Problems to ask a server for at once."
    )
    extra_body: str | None = option(
        "--extra-body", metavar="JSON", help="More fields for every request to a server."
    )
    out: str | None = option(
        "--out", metavar="DIR", help="Where results go.  [default: evaluations/ in the run or here]"
    )
    name: str | None = option(
        "--name", help="Their file name.  [default: that of the problems, after the model's]"
    )
    counts: bool = option("--counts", is_flag=True, help="Write equal samples as one line with their count.")
    overwrite: bool = option(
        "--overwrite", is_flag=True, help="Evaluate again although the results are there."
    )

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
        torch.empty(0, device=name)  # takes no memory, but needs the driver
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"--device is {name!r}, which cannot be used ({reason}); try cpu") from error


@contextmanager
def opened_engine(options: EvaluateOptions, problems: list[Problem]) -> Iterator[tuple[Engine, str]]:
    """What draws the samples, and a text that changes when what it draws would."""
    if options.engine is None:
        yield _local_engine(options, problems)
        return
    from partway.evaluation.journal import key_of
    from partway.models.opening import open_engine

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
        # Weights on a server cannot be looked at: its address and the model's name stand for them.
        yield engine, key_of(options.engine, options.model, prompt, extra_body)


def _local_engine(options: EvaluateOptions, problems: list[Problem]) -> tuple[Engine, str]:
    if options.extra_body:
        raise ConfigError("--extra-body is for remote models; add --engine URL")
    if options.model is None:
        raise click.UsageError("which model? Name a directory, a run, or a server with --engine URL")
    check_device(options.device)
    from partway.evaluation.journal import key_of
    from partway.models.opening import load_engine
    from partway.models.prompts import PLAIN, Asking
    from partway.training.environment import model_digest

    engine = load_engine(
        options.model,
        programs=options.programs,
        device=options.device,
        asking=Asking(options.chat_template, programs=options.programs),
        prompt=_few_shot_prompt(options, problems) if options.few_shot else None,
    )
    room = engine.context_length
    # Told before the first sample is drawn: the engine itself would stop at this problem, hours later.
    for problem in problems:
        length = len(engine.codec.prompt(problem.question))
        if length >= room:
            raise ModelError(
                f"problem {problem.id}: a prompt of {length} tokens leaves no room in the context of "
                f"{room} tokens; leave it out or use a model with a longer context"
            )
    digest, asked = model_digest(engine.model), engine.codec.question
    # How the question is put decides samples too; the plain way is what the bare digest has always meant.
    return engine, digest if asked == PLAIN else key_of(digest, asked.text("?"))


def _few_shot_prompt(options: EvaluateOptions, problems: list[Problem]) -> FewShotPrompt:
    from partway.datasets import load_problems
    from partway.models.prompts import FewShotPrompt

    if options.few_shot is None:
        return FewShotPrompt()
    examples = load_problems(options.few_shot, programs=options.programs)
    # An example that is also to be solved would give its answer away.
    shown = {example.question for example in examples[: options.shots]}
    if both := [problem.id for problem in problems if problem.question in shown]:
        raise ProblemError(
            f"{options.few_shot}: problem {both[0]} is also to be solved; choose other examples"
        )
    return FewShotPrompt.of(examples, shots=options.shots)


def _extra_body(options: EvaluateOptions) -> dict[str, Any]:
    try:
        fields = json.loads(options.extra_body or "{}")
        json.dumps(fields, allow_nan=False)  # as it will be sent
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise ConfigError(f"--extra-body is {options.extra_body!r}, expected a JSON object")
    return fields
