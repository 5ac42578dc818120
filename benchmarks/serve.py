"""`python -m benchmarks serve`: our tree in this process against `generate` and against inference servers."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.tables import COUNT

if TYPE_CHECKING:
    from benchmarks.sampling_contenders import Drawn, Task
    from modelservers.http_engine import HttpEngine
    from modelservers.kinds import Server
    from partway.models.engine import Engine
    from partway.models.loading import LanguageModel

SHARE = 0.25  # of 100 samples on GSM8K, as in the paper
ONE_BY_ONE = 4  # samples of a problem, for a server that draws one after the other: its rate is the same


@dataclass(frozen=True)
class Contender:
    """Who races; `most` is how many samples of a problem it is asked for, if the race has more."""

    name: str
    draw: Callable[[Task, int], Drawn]
    most: int | None = None

    def part(self, task: Task) -> Task:
        """What it has to draw of a task."""
        return task if self.most is None else replace(task, samples=min(task.samples, self.most))


@click.command()
@click.option("--vllm", metavar="PYTHON", help="Race vLLM of this environment; it is started here.")
@click.option("--serve/--no-serve", default=True, help="Race `transformers serve`; it is started here.")
@click.option("--engine", metavar="URL,...", help="Race servers that run; they must take our weights.")
@click.option("--model", metavar="NAME", help="Such as smollm2.  [default: the demo's tiny model]")
@click.option("--learning-rate", default=1e-3, show_default=True, help="To fine-tune it; smollm2 wants 1e-4.")
@click.option("--problems", "count", type=COUNT, default=8, show_default=True, help="How many to sample.")
@click.option("-n", "--samples", type=COUNT, default=100, show_default=True, help="Samples of every problem.")
@click.option("--temperature", default=0.8, show_default=True, help="Of all contenders.")
@click.option("--max-completion-length", default=128, show_default=True, help="Longest sample, in tokens.")
@click.option("--rounds", type=COUNT, default=3, show_default=True, help="Interleaved; the best counts.")
@click.option("--seed", default=0, show_default=True, help="Of problems, training and samples.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(
    ctx: click.Context, /, temperature: float, max_completion_length: int, as_json: bool, **options: Any
) -> None:
    """Drawing 1 and n samples of every problem: our tree, `generate`, and servers, same model and settings.

    Every pair of a model (fine-tuned until a quarter of the samples is distinct, as in the paper, or with
    fresh weights) and a number of samples is one race, in float32. Rates are tokens of returned samples per
    second; what a server spends on HTTP counts. Servers started here get as many threads as this process has.
    `transformers serve` draws one sample after the other, so it is asked for 4 of a problem at most.

    \b
    Examples:
      python -m benchmarks serve
      python -m benchmarks serve --vllm .venv-vllm/bin/python
      python -m benchmarks serve --vllm .venv-vllm/bin/python --model smollm2 --learning-rate 1e-4
          --problems 2 --max-completion-length 64 --rounds 1
    """
    from partway.models.engine import SamplingSettings

    settings = SamplingSettings(temperature=temperature, max_completion_length=max_completion_length)
    quiet = ctx.obj["quiet"]
    result = measure(settings, lambda line: None if quiet else click.echo(line, err=True), **options)
    if as_json:
        click.echo(json.dumps(result))
    else:
        show(result)


def measure(
    settings: Any,
    report: Callable[[str], None],
    *,
    vllm: str | None,
    serve: bool,
    engine: str | None,
    model: str | None,
    learning_rate: float,
    count: int,
    samples: int,
    rounds: int,
    seed: int,
) -> dict[str, Any]:
    """Four races: two models, two numbers of samples."""
    from benchmarks.sample import untrained
    from benchmarks.sampling_contenders import Task
    from benchmarks.sampling_model import fine_tuned_to_share
    from partway.demo.storyproblems import generate_problems
    from partway.models.loading import PRETRAINED_TINY

    problems = generate_problems(count if model else max(count, 32), seed=seed)
    fine_tuned = fine_tuned_to_share(
        problems, SHARE, samples, settings, seed, report, model or PRETRAINED_TINY, learning_rate
    )
    models = {"fine-tuned": fine_tuned, "fresh weights": untrained(fine_tuned, seed)}
    urls = [url.strip() for url in (engine or "").split(",") if url.strip()]
    results = {}
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        base = Path(directory)
        report("starting servers ...")
        urls += started(fine_tuned, vllm, serve, base, stack)
        for name, language_model in models.items():
            with contenders(language_model, urls, base / name) as racing:
                for number in dict.fromkeys((1, samples)):
                    report(f"racing: {name}, n = {number} ...")
                    task = Task(language_model, problems[:count], number, settings)
                    results[f"{name}, n = {number}"] = race(task, racing, rounds, seed, report)
    return results


def started(
    language_model: LanguageModel, vllm: str | None, serve: bool, base: Path, stack: ExitStack
) -> list[str]:
    """The addresses of servers that are started here and end with the stack."""
    from benchmarks.serving import transformers_serve, vllm_serve

    urls = []
    if serve:
        urls.append(stack.enter_context(transformers_serve(base / "serve.log"))[1])
    if vllm:
        language_model.model.save_pretrained(base / "model")
        language_model.codec.tokenizer.save_pretrained(base / "model")
        words = ("--max-model-len", str(min(language_model.context_length, 1024)))
        urls.append(stack.enter_context(vllm_serve(vllm, base / "model", base / "vllm.log", *words))[1])
    return urls


@contextmanager
def contenders(
    language_model: LanguageModel, urls: Sequence[str], directory: Path
) -> Iterator[list[Contender]]:
    """Who races, servers with the weights of the model."""
    from benchmarks.sampling_contenders import draw_with_generate
    from partway.sampling.local_engine import LocalEngine

    def draw_with_batches(task: Task, seed: int) -> Drawn:
        return draw_with_generate(task, seed, rows=max(32, task.samples))

    tree = LocalEngine(language_model, language=None)  # once: as it starts, it checks itself on the model
    racing = [
        Contender("tree", partial(draw_with_engine, tree)),
        Contender("`generate`", draw_with_batches),
    ]
    with ExitStack() as stack:
        for number, url in enumerate(urls):
            engine = _engine(language_model, url, directory / str(number))
            stack.callback(engine.close)
            engine.update(language_model.model, 0)
            kind = engine.pool.endpoints[0].kind
            name = f"{kind.name} {kind.version}".strip()
            racing.append(Contender(name, partial(draw_with_engine, engine), _most(kind)))
        yield racing


def _most(kind: Server) -> int | None:
    from modelservers.kinds import TransformersServe

    return ONE_BY_ONE if isinstance(kind, TransformersServe) else None


def _engine(language_model: LanguageModel, url: str, directory: Path) -> HttpEngine:
    from modelservers.http_engine import HttpEngine
    from partway.sampling.local_engine import end_ids
    from partway.written.forms import WrittenLanguage

    return HttpEngine(
        [url],
        language_model.codec,
        ends=end_ids(language_model),
        weight_sync="auto",
        language=WrittenLanguage(solution_end="end_of_text"),  # nobody ends a solution at its answer
        directory_of=lambda version: directory / "weights" / str(version),
        say=partial(click.echo, err=True),
    )


def draw_with_engine(engine: Engine, task: Task, seed: int) -> Drawn:
    """One request for each problem, all at once; the engine batches them."""
    from benchmarks.sampling_contenders import Drawn
    from partway.sample import Request
    from partway.solution import EMPTY

    requests = [Request(problem, EMPTY, task.samples) for problem in task.problems]
    draws = [draw for of_one in engine.complete(requests, task.settings, seed) for draw in of_one]
    longest = task.settings.max_completion_length  # text that is tokenised anew may come out longer
    encode = task.language_model.codec.encode
    lengths = ((draw.count, len(draw.tokens) or len(encode(draw.completion)) + 1) for draw in draws)
    returned = sum(count * min(length, longest) for count, length in lengths)
    return Drawn(returned, unique_share=len(draws) / (task.samples * len(requests)))


def race(
    task: Task, racing: Sequence[Contender], rounds: int, seed: int, report: Callable[[str], None]
) -> dict[str, Any]:
    """Tokens per second of every contender, the best of its rounds."""
    for contender in racing:
        contender.draw(replace(task, problems=task.problems[:1], samples=1), seed)  # warms up
    rates = dict.fromkeys((contender.name for contender in racing), 0.0)
    distinct = 0.0
    for number in range(rounds):
        for contender in racing:
            start = time.perf_counter()
            drawn = contender.draw(contender.part(task), seed + number)
            rate = drawn.tokens_returned / (time.perf_counter() - start)
            report(f"  {contender.name}: {drawn.tokens_returned} tokens, {rate:,.0f} a second")
            rates[contender.name] = max(rates[contender.name], rate)
            distinct = drawn.unique_share if contender.name == "tree" else distinct
    return {"distinct": round(distinct, 3), "tokens_per_second": {n: round(r) for n, r in rates.items()}}


def show(result: dict[str, Any]) -> None:
    """A table in Markdown, with a row for every race."""
    names = list(next(iter(result.values()))["tokens_per_second"])
    click.echo(f"| tokens a second | distinct | {' | '.join(names)} |")
    click.echo(f"|{' --- |' * (len(names) + 2)}")
    for title, one in result.items():
        rates = " | ".join(f"{one['tokens_per_second'][name]:,}" for name in names)
        click.echo(f"| {title} | {one['distinct']:.0%} | {rates} |")
