"""`partway bench sample`: the sampling tree against `generate` and `generate_batch`, in one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    pass

SITUATIONS = ["groceries", "savings", "baking", "parcels"]
TRAINING_PROBLEMS = 600
SHARE = 0.25  # of 100 samples on GSM8K, as in the paper
ROWS = (100, 400)  # the baselines are run with either size of batch, and the faster counts


@click.command()
@click.option("--model", metavar="DIR", help="A fine-tuned model; without it a tiny one is trained first.")
@click.option("--problems", "count", default=8, show_default=True, help="How many problems to sample.")
@click.option("-n", "--samples", default=100, show_default=True, help="Samples of every problem.")
@click.option("--temperature", default=0.8, show_default=True, help="Of all contenders.")
@click.option("--max-completion-length", default=128, show_default=True, help="Longest sample, in tokens.")
@click.option("--rounds", default=2, show_default=True, help="Interleaved rounds; the best of each counts.")
@click.option("--seed", default=0, show_default=True, help="Of problems, training and samples.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(
    ctx: click.Context,
    model: str | None,
    count: int,
    samples: int,
    temperature: float,
    max_completion_length: int,
    rounds: int,
    seed: int,
    as_json: bool,
) -> None:
    """Drawing n samples of every problem: the sampling tree against transformers, same model and settings.

    Three races: a fine-tuned model, of which about a quarter of the samples is distinct as in the paper; the
    same model with fresh weights, where nothing is shared; and one sample each of 32 problems, as in
    training.
    Rates are tokens of returned samples per second.

    \b
    Baselines, in the same run:
      generate        model.generate(num_return_sequences=n), left-padded, with its cache
      generate_batch  transformers' continuous batching; null with the reason where it does not run
    \b
    Examples:
      partway bench sample
      partway bench sample --model runs/gsm8k/final --problems 20 --json
    """
