"""The options of `partway evaluate`, and the engine that they ask for: a model here or on a server."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from partway import registry
from partway.cli.options import (
    CHAT_TEMPLATE,
    COLUMNS,
    DEVICE,
    ENGINE,
    LENGTH,
    PROBLEMS,
    SEED,
    TEMPERATURE,
    TOP_K,
    TOP_P,
    check_device,
    given,
    option,
    out,
    samples,
    spoken,
)
from partway.errors import ConfigError, ModelError, ProblemError

if TYPE_CHECKING:
    from partway.language import Language
    from partway.models.engine import Engine
    from partway.models.text import Codec, PlainPrompt
    from partway.problem import Problem

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class EvaluateOptions:
    """What the command line of `partway evaluate` says."""

    model: str | None = given(click.argument("model", required=False, metavar="[MODEL_OR_RUN]"))
    problems: str | None = given(PROBLEMS)
    columns: str | None = given(COLUMNS)
    limit: int | None = option(
        "--limit", type=click.IntRange(1), metavar="N", help="Take the first N problems only."
    )
    samples: int = given(samples(100))
    temperature: float = given(TEMPERATURE)
    temperatures: str | None = option(
        "--temperatures",
        metavar="T,T,...",
        help="Several temperatures, each with samples and a result of its own; the model is loaded once.",
    )
    top_p: float = given(TOP_P)
    top_k: int = given(TOP_K)
    max_completion_length: int | None = given(LENGTH)
    ks: str | None = option(
        "--k", "ks", metavar="K,K,...", help="The k of pass@k and maj@k.  [default: 1,5,10,20,50 and N]"
    )
    metrics: str | None = option(
        "--metrics", metavar="MODULE:NAME,...", help="Your own metrics (docs/extending.md)."
    )
    seed: int = given(SEED)
    chat_template: Literal["auto", "none"] = given(CHAT_TEMPLATE)
    device: str | None = given(DEVICE)
    dtype: Literal["float32", "bfloat16", "float16"] | None = option(
        "--dtype",
        type=click.Choice(["float32", "bfloat16", "float16"]),
        needs="model",
        not_with=["engine"],
        help="Type of the weights; bfloat16 is faster where the processor computes with it.  "
        "[default: float32 on a CPU, else as they are stored]",
    )
    engine: str | None = given(ENGINE)
    chance: str | None = option(
        "--chance",
        metavar="TRAIN",
        help="Measure chance: draw references of the problems in this file, filled with the question's "
        "numbers (in SQL, its values). With a model, chance stands beside it. For a run with --temperatures, "
        "the default is the problems that it was trained on.",
    )
    few_shot: str | None = option(
        "--few-shot", metavar="FILE", help="Show problems of this file to the model as examples."
    )
    shots: int | None = option(
        "--shots", type=click.IntRange(1), needs="few_shot", help="How many examples to show.  [default: 4]"
    )
    tokenizer: str | None = option(
        "--tokenizer",
        metavar="NAME",
        needs="engine",
        help="Ask servers as this model or run is asked (chat template).  [default: MODEL, if that is a "
        "directory here; else servers are asked `# question`]",
    )
    concurrency: int | None = option(
        "--concurrency",
        type=click.IntRange(1),
        needs="engine",
        help="How many problems servers work on at once.  [default: 8]",
    )
    extra_body: str | None = option(
        "--extra-body", metavar="JSON", needs="engine", help="More fields for every request to a server."
    )
    out: str | None = given(out("evaluations/ in the run or here"))
    name: str | None = option(
        "--name", help="The name of the result.  [default: the name of the model, then that of the problems]"
    )
    counts: bool = option("--counts", is_flag=True, help="Write equal samples as one line with their count.")
    overwrite: bool = option(
        "--overwrite", is_flag=True, help="Evaluate again although the results are there."
    )

    @cached_property
    def asks_as(self) -> str | None:
        """The model or run whose tokenizer puts questions to a server: named, or MODEL if it is here."""
        from partway.runs import Run

        path = Path(self.model or "")
        is_here = (path / "tokenizer_config.json").is_file() or Run(path).is_started
        is_here = is_here or self.model in registry.parts("models")
        return self.tokenizer or (self.model if self.model and is_here else None)

    @cached_property
    def language(self) -> Language:
        """The language and rules: the run's, if the model is one, unless the options say otherwise."""
        return spoken(self.tokenizer or self.model)


@contextmanager
def opened_engine(
    options: EvaluateOptions, problems: list[Problem], say: Callable[[str], None]
) -> Iterator[tuple[Engine, str]]:
    """What draws the samples, and a text that changes when what it draws would."""
    if options.chance is not None:
        yield _chance(options)
        return
    if options.engine is None:
        yield _local_engine(options, problems)
        return
    from partway import registry
    from partway.runs.rows import key_of

    make = registry.part("engines", "http")
    codec, prompt, extra_body = _codec(options), _few_shot_prompt(options, problems), _extra_body(options)
    if codec is None and prompt is None:
        say("the server is sent `# QUESTION`, without a chat template; --tokenizer NAME adds that model's")
    engine = make(
        [url.strip() for url in options.engine.split(",")],
        codec,
        prompt=prompt,
        language=options.language,
        model=options.model,
        extra_body=extra_body,
        concurrency=options.concurrency or 8,
        say=say,
    )
    with closing(engine):
        # Weights on a server cannot be looked at: its address and the model's name stand for them.
        yield engine, key_of(options.engine, options.model, engine.question.text("?"), extra_body)


def _chance(options: EvaluateOptions) -> tuple[Engine, str]:
    from partway.measuring.chance import Chance
    from partway.problems import load_problems
    from partway.runs.rows import key_of

    train = load_problems(str(options.chance), language=options.language)
    return Chance(train, options.language), key_of("chance", *(str(problem) for problem in train))


def _codec(options: EvaluateOptions) -> Codec | None:
    """How the tokenizer puts questions, if there is one."""
    if options.asks_as is None:
        return None
    from partway.models.loading import load_codec
    from partway.models.prompts import Asking

    return load_codec(options.asks_as, Asking(options.chat_template, language=options.language))


def _local_engine(options: EvaluateOptions, problems: list[Problem]) -> tuple[Engine, str]:
    if options.model is None:
        raise click.UsageError("which model? Name a directory, a run, or a server with --engine URL")
    logger.info("loading %s (some seconds)", options.model)  # before torch is imported, which takes seconds
    check_device(options.device)
    from partway.models.loading import load_model
    from partway.models.prompts import Asking
    from partway.runs.rows import key_of
    from partway.sampling.local_engine import LocalEngine
    from partway.training.resuming import model_digest

    asking = Asking(options.chat_template, language=options.language)
    loaded = load_model(options.model, dtype=options.dtype, device=options.device, asking=asking)
    if (prompt := _few_shot_prompt(options, problems)) is not None:  # in place of the model's own
        loaded = replace(loaded, codec=replace(loaded.codec, question=prompt))
    engine = LocalEngine(loaded, language=options.language)
    room = engine.context_length
    language = options.language.fitted(room, engine.codec.prompt)
    # Told before the first sample is drawn: the engine itself would stop at this problem, hours later.
    for problem in problems:
        length = len(engine.codec.prompt(language.question(problem)))
        if length >= room:
            raise ModelError(
                f"problem {problem.id}: a prompt of {length} tokens leaves no room in the context of "
                f"{room} tokens; leave it out or use a model with a longer context"
            )
    # How the question is put decides samples too.
    return engine, key_of(model_digest(engine.model), engine.codec.question.text("?"))


def _few_shot_prompt(options: EvaluateOptions, problems: list[Problem]) -> PlainPrompt | None:
    if options.few_shot is None:
        return None
    from partway.measuring.few_shot import SHOTS, few_shot_prompt
    from partway.problems import load_problems

    examples = load_problems(options.few_shot, language=options.language)
    # An example that is also to be solved would give its answer away.
    shots = options.shots or SHOTS
    shown = {example.question for example in examples[:shots]}
    if both := [problem.id for problem in problems if problem.question in shown]:
        raise ProblemError(
            f"{options.few_shot}: problem {both[0]} is also to be solved; choose other examples"
        )
    return few_shot_prompt(examples, shots=shots, language=options.language)


def _extra_body(options: EvaluateOptions) -> dict[str, Any]:
    try:
        fields = json.loads(options.extra_body or "{}")
        json.dumps(fields, allow_nan=False)  # as it will be sent
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise ConfigError(f"--extra-body is {options.extra_body!r}, expected a JSON object")
    return fields
