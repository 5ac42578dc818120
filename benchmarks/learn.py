"""`python -m benchmarks learn`: learning from growing buffers, our scorer against padded flat rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from benchmarks.tables import COUNT, print_table
from partway.errors import ConfigError

if TYPE_CHECKING:
    from benchmarks.learning_contenders import Measured
    from partway.learning.scoring import LearningPlan
    from partway.problem import Problem

PROBLEMS = 2000
COLUMNS = ("solutions", "flat s", "ours s", "faster", "flat tokens", "ours", "distinct", "flat MB", "ours MB")


@click.command()
@click.option("--model", default="tiny", show_default=True, help="tiny, 135m (random weights) or another.")
@click.option("--problems", "path", metavar="FILE", help="With references; built-in ones if left out.")
@click.option("--batch", type=COUNT, default=32, show_default=True, help="Problems per step.")
@click.option("--sizes", default="1,2,4,8,16", show_default=True, help="Solutions per problem.")
@click.option("--rows", type=COUNT, default=32, show_default=True, help="Flat rows at a time.")
@click.option("--tokens-per-pass", type=COUNT, default=2048, show_default=True, help="Our budget.")
@click.option(
    "--rounds", type=COUNT, default=3, show_default=True, help="Interleaved rounds; the best of each counts."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(ctx: click.Context, /, sizes: str, as_json: bool, **options: Any) -> None:
    """Learning from buffers of 1, 2, 4, 8 and 16 solutions per problem: forward and backward of one step.

    Buffers are what the algorithm keeps of other ways to solve the problems, partially correct ones among
    them. Both contenders have the same model, buffers and loss, and their gradients are compared. Memory is
    what a step takes beyond weights and gradients.

    \b
    Baseline, in the same run:
      flat   every target behind its prompt as a row, rows sorted by length, padded to the longest of
             their batch, through model(input_ids, attention_mask, labels)
    \b
    Examples:
      python -m benchmarks learn
      python -m benchmarks learn --problems data/gsm8k/train.jsonl --json
      python -m benchmarks learn --model 135m --batch 8 --rounds 1
    """
    quiet = ctx.obj["quiet"]
    result = measure(_numbers(sizes), lambda line: None if quiet else click.echo(line, err=True), **options)
    if as_json:
        click.echo(json.dumps(result))
    else:
        title = f"learning from {result['problems_per_step']} problems, {result['model']}"
        print_table(title, COLUMNS, [_cells(line) for line in result["rows"]])


def measure(
    sizes: Sequence[int],
    report: Callable[[str], None],
    *,
    model: str,
    path: str | None,
    batch: int,
    rows: int,
    tokens_per_pass: int,
    rounds: int,
) -> dict[str, Any]:
    """The race at every size."""
    from benchmarks.learning_buffers import filled_buffers
    from benchmarks.learning_contenders import contestant, learn_flat, learn_ours, race
    from partway.learning.scoring import Scorer
    from partway.learning.token_tree import Targets

    problems = _problems(path)
    report(f"filling {batch} buffers with {max(sizes)} solutions ...")
    buffers = filled_buffers(problems, batch, max(sizes))
    stock, codec = contestant(model, problems)
    scorer = Scorer(stock, codec.pad_id, tokens_per_pass=tokens_per_pass)
    lines = []
    for size in sizes:
        report(f"racing with buffers of {size} ...")
        step = [
            Targets.of(
                tuple(codec.prompt(problem.question)),
                tuple(tuple(codec.target(solution, finished)) for solution, finished in kept[:size]),
            )
            for problem, kept in buffers
        ]
        contenders = {
            "flat": partial(learn_flat, stock, step, codec.pad_id, rows),
            "ours": partial(learn_ours, stock, step, scorer),
        }
        lines.append(_line(size, scorer.plan(step), **race(stock, contenders, rounds)))
    return {
        "model": model,
        "parameters": sum(parameter.numel() for parameter in stock.parameters()),
        "layout": scorer.layout.name,
        "problems_per_step": batch,
        "speedup_vs_flat_at_4": next((line["speedup"] for line in lines if line["solutions"] == 4), None),
        "tokens_over_distinct": max(line["tokens_over_distinct"] for line in lines),
        "rows": lines,
    }


def _problems(path: str | None) -> list[Problem]:
    from partway.demo.storyproblems import generate_problems
    from partway.problems import load_problems

    return load_problems(path) if path else generate_problems(PROBLEMS)


def _line(size: int, plan: LearningPlan, flat: Measured, ours: Measured) -> dict[str, Any]:
    from partway.learning.token_tree import grow

    distinct = sum(len(grow(problem)) for problem in plan.problems)  # to read if nothing is read twice
    return {
        "solutions": size,
        "speedup": round(flat.seconds / ours.seconds, 2),
        "flat_seconds": round(flat.seconds, 4),
        "ours_seconds": round(ours.seconds, 4),
        "flat_steps_per_second": round(1 / flat.seconds, 4),
        "ours_steps_per_second": round(1 / ours.seconds, 4),
        "flat_tokens": flat.tokens,
        "ours_tokens": ours.tokens,
        "distinct_tokens": distinct,
        "tokens_over_distinct": round(ours.tokens / distinct, 3),
        "flat_peak_megabytes": flat.peak_megabytes,
        "ours_peak_megabytes": ours.peak_megabytes,
        "gradient_difference": float((ours.gradient - flat.gradient).norm() / flat.gradient.norm()),
    }


def _cells(line: dict[str, Any]) -> list[str]:
    names = ("flat_seconds", "ours_seconds", "speedup", "flat_tokens", "ours_tokens", "distinct_tokens")
    memory = [line["flat_peak_megabytes"], line["ours_peak_megabytes"]]
    return [
        f"{line['solutions']}",
        *(f"{line[name]:,}" for name in names),
        *("?" if megabytes is None else f"{megabytes:,.0f}" for megabytes in memory),
    ]


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(number) for number in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise ConfigError(f"--sizes is {text!r}, expected numbers of at least 1 with commas; try 1,2,4,8,16")
    return numbers
