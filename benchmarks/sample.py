"""`python -m benchmarks sample`: the sampling tree against `generate` and `generate_batch`, in one run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from benchmarks.tables import COUNT, print_table

if TYPE_CHECKING:
    from benchmarks.sampling_contenders import Drawn, Task
    from partway.models.engine import SamplingSettings
    from partway.models.loading import LanguageModel

SHARE = 0.25  # of 100 samples on GSM8K, as in the paper
BATCH = 32  # problems explored at once in training

COLUMNS = ("", "generate", "generate_batch", "distinct", "tokens returned", "computed")


@click.command()
@click.option("--model", metavar="DIR", help="A fine-tuned model; without it a tiny one is fine-tuned first.")
@click.option(
    "--problems", "count", type=COUNT, default=8, show_default=True, help="How many problems to sample."
)
@click.option("-n", "--samples", type=COUNT, default=100, show_default=True, help="Samples of every problem.")
@click.option("--temperature", default=0.8, show_default=True, help="Of all contenders.")
@click.option("--max-completion-length", default=128, show_default=True, help="Longest sample, in tokens.")
@click.option("--rows", type=COUNT, default=100, show_default=True, help="What the baselines draw at a time.")
@click.option(
    "--rounds", type=COUNT, default=3, show_default=True, help="Interleaved rounds; the best of each counts."
)
@click.option("--seed", default=0, show_default=True, help="Of problems, training and samples.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(
    ctx: click.Context, /, temperature: float, max_completion_length: int, as_json: bool, **options: Any
) -> None:
    """Drawing n samples of every problem: the sampling tree against transformers, same model and settings.

    Three races: a model fine-tuned on these problems until about a quarter of the samples is distinct, as in
    the paper; the same model with fresh weights, where nothing is shared, on half of the problems; and one
    sample each of 32 problems, as in training. Rates are tokens of returned samples per second.

    \b
    Baselines, in the same run:
      generate        model.generate(num_return_sequences=n), left-padded, with its cache
      generate_batch  transformers' continuous batching; null with the reason where it does not run
    \b
    Examples:
      python -m benchmarks sample
      python -m benchmarks sample --model runs/gsm8k/final --problems 20 --json
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
    settings: SamplingSettings,
    report: Callable[[str], None],
    *,
    model: str | None,
    count: int,
    samples: int,
    rows: int,
    rounds: int,
    seed: int,
) -> dict[str, Any]:
    """The three races."""
    from benchmarks.sampling_contenders import Task
    from benchmarks.sampling_model import fine_tuned_to_share
    from partway.demo.storyproblems import generate_problems
    from partway.models.loading import load_model

    problems = generate_problems(max(count, BATCH), seed=seed)
    fine_tuned = (
        fine_tuned_to_share(problems, SHARE, samples, settings, seed, report)
        if model is None
        else load_model(model)
    )
    races = {
        "fine_tuned": Task(fine_tuned, problems[:count], samples, settings),
        "untrained": Task(untrained(fine_tuned, seed), problems[: -(-count // 2)], samples, settings),
        "one_each": Task(fine_tuned, problems[:BATCH], 1, settings),
    }
    results = {}
    for name, task in races.items():
        report(f"racing: {name.replace('_', ' ')} ...")
        results[name] = race(task, rows, rounds if task.samples > 1 else 3 * rounds, seed)
    return results["fine_tuned"] | {name: results[name] for name in ("untrained", "one_each")}


def untrained(language_model: LanguageModel, seed: int) -> LanguageModel:
    """The same model with fresh weights."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = type(language_model.model)(language_model.model.config)
    return replace(language_model, model=model.eval().to(language_model.model.device))


def race(task: Task, rows: int, rounds: int, seed: int) -> dict[str, Any]:
    """Every contender in every round; the best round of each counts."""
    from benchmarks.sampling_contenders import (
        draw_on_tree,
        draw_with_drafts,
        draw_with_generate,
        draw_with_generate_batch,
    )

    contenders: dict[str, Callable[[Task, int], Drawn]] = {
        "tree": draw_on_tree,
        "drafts": draw_with_drafts,
        "generate": partial(draw_with_generate, rows=rows),
        "generate_batch": partial(draw_with_generate_batch, rows=rows),
    }
    refusal = None
    for name, draw in list(contenders.items()):
        try:
            draw(replace(task, problems=task.problems[:1], samples=1), seed)  # warms up
        except Exception as error:  # whatever continuous batching lacks for this model and machine
            if name != "generate_batch":
                raise
            del contenders[name]
            refusal = f"{type(error).__name__}: {error}"
    rates = dict.fromkeys(contenders, 0.0)
    drawn: dict[str, Drawn] = {}
    for number in range(rounds):
        for name, draw in contenders.items():
            start = time.perf_counter()
            drawn[name] = draw(task, seed + number)
            rates[name] = max(rates[name], drawn[name].tokens_returned / (time.perf_counter() - start))
    tree = drawn["tree"]
    faster = {name: round(rates["tree"] / rate, 2) for name, rate in rates.items()}
    return {
        "speedup_vs_generate": faster["generate"],
        "speedup_vs_generate_batch": faster.get("generate_batch"),
        "generate_batch_refused": refusal,
        "unique_share": round(tree.unique_share, 3),
        "tokens_returned": tree.tokens_returned,
        "tokens_computed": tree.tokens_computed,
        "speedup_with_drafts": round(rates["drafts"] / rates["tree"], 2),
        "frac_drafted_tokens": round(drawn["drafts"].drafted_share, 3),
        "tokens_per_second": {name: round(rate) for name, rate in rates.items()},
    }


def show(result: dict[str, Any]) -> None:
    """A row for every race."""
    races = {"fine-tuned": result, "untrained": result["untrained"], "one each": result["one_each"]}
    print_table(
        "Drawing samples, times as fast as", COLUMNS, [(name, *_cells(r)) for name, r in races.items()]
    )
    for name, one in races.items():
        click.echo(
            f"{name}, with references as drafts: {one['speedup_with_drafts']:.2f} times as fast as the tree"
            f" without, {one['frac_drafted_tokens']:.0%} of tokens drafted"
        )
    if reason := result["generate_batch_refused"]:
        click.echo(f"generate_batch did not run: {reason}")


def _cells(result: dict[str, Any]) -> list[str]:
    speedups = [result["speedup_vs_generate"], result["speedup_vs_generate_batch"]]
    return [
        *("?" if speedup is None else f"{speedup:.1f}x" for speedup in speedups),
        f"{result['unique_share']:.0%}",
        f"{result['tokens_returned']:,}",
        f"{result['tokens_computed']:,}",
    ]
