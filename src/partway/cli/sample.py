"""`partway sample`: solutions of a model for one question or many, with counts, traces and verdicts."""

from __future__ import annotations

import ast
import json
import logging
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import click

from partway.cli.options import (
    AS_JSON,
    CHAT_TEMPLATE,
    DEVICE,
    LENGTH,
    SEED,
    TEMPERATURE,
    TOP_K,
    TOP_P,
    check_device,
    counted,
    declared,
    given,
    length_for,
    option,
    patience,
    samples,
    say_next,
    speaks,
    spoken,
    takes,
)
from partway.cli.trace import as_object as trace_object
from partway.errors import ProblemError, SolutionError
from partway.problem import Problem
from partway.runs import Run

if TYPE_CHECKING:
    from partway.buffer import Verdict
    from partway.language import Language, Trace
    from partway.sample import Sample
    from partway.solution import Solution

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SampleOptions:
    """What the command line says."""

    model: str = given(click.argument("model", metavar="MODEL_OR_RUN"))
    question: str | None = given(click.argument("question", required=False, metavar="[QUESTION|-]"))
    samples: int = given(samples(10, "-n"))
    answer: str | None = option(
        "--answer", metavar="VALUE", help="The right answer: with it, every solution gets a verdict."
    )
    prefix: str = option(
        "--prefix", default="", metavar="STEPS", help="Steps to continue, with ';' or newlines between them."
    )
    temperature: float = given(TEMPERATURE)
    top_p: float = given(TOP_P)
    top_k: int = given(TOP_K)
    max_completion_length: int | None = given(LENGTH)
    seed: int = given(SEED)
    chat_template: Literal["auto", "none"] = given(CHAT_TEMPLATE)
    device: str | None = given(DEVICE)


Solve = Callable[["Problem"], list[tuple["Sample", "Trace"]]]


@click.command()
@takes(SampleOptions)
@speaks
@declared(
    "--show", type=click.IntRange(1), default=10, show_default=True, help="How many solutions to print."
)
@AS_JSON
def command(show: int, as_json: bool, **options: Any) -> None:
    """Let a model write solutions to questions, and show how often it writes each and what each does.

    MODEL is a directory in Hugging Face's layout, a run of partway train, a name on the Hub, or smollm2.
    Equal solutions are shown once, the most frequent first. Without QUESTION, questions are read line by line
    until the input ends (Ctrl-D); `How many? = 15` says what the right answer is.

    \b
    Examples:
      partway sample runs/demo
      partway sample runs/demo "Anna has 12 apples and buys 3. How many has she?"
      partway sample runs/demo "12 apples and 3 more. How many?" --answer 15
      partway sample smollm2 "4 pages a day, for 3 days?" --prefix "n0 = 4"
    """
    chosen = SampleOptions(**options)
    # All that can be wrong with the options is found before the model is loaded.
    language = spoken(chosen.model)
    prefix = parse_prefix(chosen.prefix, language)
    answer = None if chosen.answer is None else value_of(chosen.answer)
    given_one = [] if chosen.question is None else [read_question(chosen.question)]
    solve = _loaded(chosen, prefix, language)
    for problem in [Problem("the question", one, answer) for one in given_one] or _questions():
        solutions = solve(problem)
        if as_json:
            click.echo(json.dumps(as_object(problem, prefix, solutions), ensure_ascii=False))
        else:
            show_solutions(solutions, show, language)
    if not as_json:
        run = Run.around(chosen.model)
        trains = f"partway train --model_name_or_path {chosen.model} --train_file PROBLEMS.jsonl"
        say_next(trains if run is None else f"partway explore {run.directory}")


def _loaded(options: SampleOptions, prefix: Solution, language: Language) -> Solve:
    """What solves problems: the model, loaded once."""
    from partway.models.engine import SamplingSettings
    from partway.sample import Request

    length = length_for(options.model, options.max_completion_length)
    settings = SamplingSettings(options.temperature, options.top_p, options.top_k, length)
    logger.info("loading %s (some seconds)", options.model)  # before torch is imported, which takes seconds
    check_device(options.device)
    from partway.models.loading import load_model
    from partway.models.prompts import Asking
    from partway.sampling.local_engine import LocalEngine

    asking = Asking(options.chat_template, language=language)
    engine = LocalEngine(load_model(options.model, device=options.device, asking=asking), language=language)

    def solve(problem: Problem) -> list[tuple[Sample, Trace]]:
        with _status(f"sampling from {options.model}"):
            [samples] = engine.complete([Request(problem, prefix, options.samples)], settings, options.seed)
            return judge(samples, problem, language)

    return solve


def _status(text: str) -> AbstractContextManager[object]:
    """Says what is being done, on a terminal for as long as it is."""
    from rich.console import Console

    console = Console(stderr=True)
    is_shown = console.is_terminal and logger.isEnabledFor(logging.INFO)
    return console.status(text) if is_shown else patience(text)


def _questions() -> Iterator[Problem]:
    """What is asked, line by line; on a terminal there is a prompt, and what was typed before."""
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        import readline  # noqa: F401  # arrows move in the line and through earlier ones
    while True:
        try:
            line = input("question> ") if is_terminal else sys.stdin.readline()
        except EOFError:
            click.echo()
            return
        if not line and not is_terminal:
            return
        if line.strip():
            question, answer = answered(line)
            yield Problem("the question", question, answer)


def answered(line: str) -> tuple[str, Any]:
    """A question, and the right answer if the line says it.

    >>> answered("2 pens and 3 more? = 5"), answered("What is x if x = 3?")
    (('2 pens and 3 more?', 5), ('What is x if x = 3?', None))
    """
    question, mark, said = line.strip().rpartition("?")
    _, equals, value = said.partition("=")
    if not (mark and equals and value.strip()):
        return line.strip(), None
    return f"{question}?", value_of(value.strip())


def read_question(text: str) -> str:
    """The question, from standard input for '-'."""
    question = sys.stdin.read() if text == "-" else text
    if not question.strip():
        raise ProblemError("the question is empty; give it as one argument in quotation marks")
    return question


def value_of(text: str) -> Any:
    """An answer as Python would spell it, or else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def parse_prefix(text: str, language: Language) -> Solution:
    """The steps to continue."""
    try:
        prefix = language.parse(text)
    except SolutionError as error:
        raise SolutionError(f"--prefix, {error}") from None
    if language.end(f"{prefix}\n") is not None:
        raise SolutionError(f"--prefix {language.instruction.ending} already; give the steps before that one")
    return prefix


def judge(samples: Sequence[Sample], problem: Problem, language: Language) -> list[tuple[Sample, Trace]]:
    """Samples of the same text as one each, traced and, if the answer is known, with a verdict."""
    by_text: dict[str, list[Sample]] = {}
    for sample in samples:
        # One that was cut off just before its last line end is the same solution.
        by_text.setdefault(sample.text.rstrip("\n"), []).append(sample)
    distinct = sorted(map(_merged, by_text.values()), key=lambda sample: -sample.count)
    traces = language.trace_all([(problem, sample.text) for sample in distinct])
    if problem.answer is not None:
        verdicts = _verdicts(traces, problem, language)
        distinct = [replace(one, verdict=verdict) for one, verdict in zip(distinct, verdicts, strict=True)]
    return list(zip(distinct, traces, strict=True))


def _merged(same: Sequence[Sample]) -> Sample:
    """One sample for all that have the same text; it is cut off if one of them is."""
    first = next((sample for sample in same if not sample.finished), same[0])
    log_prob = _log_sum([sample.log_prob or 0.0 for sample in same])
    return replace(first, count=sum(sample.count for sample in same), log_prob=log_prob)


def _log_sum(log_probs: Sequence[float]) -> float:
    largest = max(log_probs)  # taken out of the sum, or small probabilities would become 0
    return largest + math.log(math.fsum(math.exp(log_prob - largest) for log_prob in log_probs))


def _verdicts(traces: Sequence[Trace], problem: Problem, language: Language) -> list[Verdict]:
    """What a fresh buffer says to each; it sees the right ones first, to know what leads to them."""
    from partway.buffer import SolutionBuffer

    buffer = SolutionBuffer.seeded(problem, language=language)
    is_wrong = [not language.is_correct(problem, found) for found in traces]
    order = sorted(range(len(traces)), key=is_wrong.__getitem__)  # otherwise the most frequent first
    verdicts = {index: buffer.consider(traces[index]) for index in order}
    return [verdicts[index] for index in range(len(traces))]


def as_object(
    problem: Problem, prefix: Solution, solutions: Sequence[tuple[Sample, Trace]]
) -> dict[str, Any]:
    """Everything that was sampled as plain JSON values."""
    return {
        "question": problem.question,
        "prefix": list(prefix.steps),
        "samples": sum(sample.count for sample, _ in solutions),
        "solutions": [_solution_object(sample, trace) for sample, trace in solutions],
    }


def _solution_object(sample: Sample, trace: Trace) -> dict[str, Any]:
    return {
        "count": sample.count,
        "finished": sample.finished,
        "log_prob": round(sample.log_prob or 0.0, 4),
        "verdict": sample.verdict,
        "text": sample.text,
        "solution": trace.solution.text,
        **trace_object(trace),
    }


def show_solutions(solutions: Sequence[tuple[Sample, Trace]], limit: int, language: Language) -> None:
    """A table for each of the first `limit` solutions, titled with its share and verdict."""
    from partway.cli.trace_tables import Shown
    from partway.cli.trace_tables import show as show_traces

    total = sum(sample.count for sample, _ in solutions)
    show_traces(
        [Shown.of(_title(one, total), one.text, trace, language) for one, trace in solutions[:limit]],
        language,
    )
    if rest := solutions[limit:]:
        click.echo(
            f"and {len(rest)} more, drawn {counted(sum(one.count for one, _ in rest), 'time')}; see --show"
        )


def _title(sample: Sample, total: int) -> str:
    verdict = f", {sample.verdict.words}" if sample.verdict else ""
    return f"{sample.count} of {total}{verdict}{'' if sample.finished else ', cut off'}"
