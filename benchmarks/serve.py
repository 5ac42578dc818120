"""`python -m benchmarks serve`: our tree in this process against `generate` and against inference servers."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.tables import COUNT, print_table

if TYPE_CHECKING:
    from benchmarks.sampling_contenders import Drawn, Task
    from partway.models.servers.engine import ServerEngine

SHARE = 0.25  # of 100 samples on GSM8K, as in the paper

Contender = Callable[["Task", int], "Drawn"]


@click.command()
@click.option("--engine", metavar="URL,...", help="Servers to race, each by itself; they take our weights.")
@click.option("--model", metavar="DIR", help="A fine-tuned model; without it a tiny one is fine-tuned first.")
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
    fresh weights) and a number of samples is one race. Rates are tokens of returned samples per second; what
    a server spends on HTTP counts. Start servers with the model to be raced, as docs/servers.md says, and
    give them as many threads as this process has.

    \b
    Examples:
      python -m benchmarks serve
      python -m benchmarks serve --model runs/gsm8k/final --engine http://localhost:8000,http://localhost:8001
    """
    from partway.models.settings import SamplingSettings

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
    engine: str | None,
    model: str | None,
    count: int,
    samples: int,
    rounds: int,
    seed: int,
) -> dict[str, Any]:
    """Four races: two models, two numbers of samples."""
    from benchmarks.sample import untrained
    from benchmarks.sampling_contenders import Task
    from benchmarks.sampling_model import fine_tuned_to_share
    from partway.datasets.storyproblems import generate_problems
    from partway.models.loading import load_model

    problems = generate_problems(max(count, 32), seed=seed)
    fine_tuned = (
        fine_tuned_to_share(problems, SHARE, samples, settings, seed, report)
        if model is None
        else load_model(model)
    )
    models = {"fine-tuned": fine_tuned, "fresh weights": untrained(fine_tuned, seed)}
    urls = [url.strip() for url in (engine or "").split(",") if url.strip()]
    results = {}
    for name, language_model in models.items():
        for number in (1, samples):
            task = Task(language_model, problems[:count], number, settings)
            report(f"racing: {name}, n = {number} ...")
            with contenders(task, urls) as racing:
                results[f"{name}, n = {number}"] = race(task, racing, rounds, seed)
    return results


@contextmanager
def contenders(task: Task, urls: list[str]) -> Iterator[dict[str, Contender]]:
    """Who races, servers with the weights of the task."""
    from benchmarks.sampling_contenders import draw_on_tree, draw_with_generate

    racing: dict[str, Contender] = {
        "tree": draw_on_tree,
        "generate": partial(draw_with_generate, rows=max(32, task.samples)),
    }
    engines: list[ServerEngine] = []
    with tempfile.TemporaryDirectory() as directory:
        for url in urls:
            engine = _engine(task, url, Path(directory))
            engine.update(task.language_model.model, 0)
            identity = engine.pool.endpoints[0].identity
            assert identity is not None, "a server with weights was identified"
            racing[f"{identity.kind.name} {identity.version}".strip()] = partial(draw_with_server, engine)
            engines.append(engine)
        try:
            yield racing
        finally:
            for engine in engines:
                engine.close()


def _engine(task: Task, url: str, directory: Path) -> ServerEngine:
    from partway.execution import PythonPrograms
    from partway.models.servers.engine import ServerEngine

    return ServerEngine(
        [url],
        task.language_model,
        programs=PythonPrograms(solution_end="end_of_text"),  # nobody ends a solution at its answer
        directory_of=lambda version: directory / url.replace("/", "_") / str(version),
    )


def draw_with_server(engine: ServerEngine, task: Task, seed: int) -> Drawn:
    """One request for each problem, all at once; the server batches them."""
    from benchmarks.sampling_contenders import Drawn
    from partway.models.engine import Request
    from partway.solution import EMPTY

    requests = [Request(problem, EMPTY, task.samples) for problem in task.problems]
    draws = [draw for of_one in engine.complete(requests, task.settings, seed) for draw in of_one]
    return Drawn(sum(draw.count * draw.tokens for draw in draws))


def race(task: Task, racing: dict[str, Contender], rounds: int, seed: int) -> dict[str, Any]:
    """Tokens per second of every contender, the best of its rounds."""
    for draw in racing.values():
        draw(replace(task, problems=task.problems[:1], samples=1), seed)  # warms up
    rates = dict.fromkeys(racing, 0.0)
    distinct = 0.0
    for number in range(rounds):
        for name, draw in racing.items():
            start = time.perf_counter()
            drawn = draw(task, seed + number)
            rates[name] = max(rates[name], drawn.tokens_returned / (time.perf_counter() - start))
            distinct = drawn.unique_share if name == "tree" else distinct
    return {"distinct": round(distinct, 3), "tokens_per_second": {n: round(r) for n, r in rates.items()}}


def show(result: dict[str, Any]) -> None:
    """A row for every race."""
    names = list(next(iter(result.values()))["tokens_per_second"])
    rows = [
        (race, f"{one['distinct']:.0%}", *(f"{one['tokens_per_second'][name]:,}" for name in names))
        for race, one in result.items()
    ]
    print_table("Tokens of returned samples per second", ("", "distinct", *names), rows)
