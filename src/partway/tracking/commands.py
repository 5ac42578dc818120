"""`partway export`: the model of a run for programs that know nothing of it."""

from __future__ import annotations

from pathlib import Path

import click

from partway.cli.options import reads_runs
from partway.errors import ConfigError


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--merged", metavar="DIR", required=True, help="Where the whole model goes: a new directory.")
@reads_runs
def export(run: str, merged: str) -> None:
    """Write the model of a run whole: weights, with those of a LoRA adapter added, tokenizer and template.

    RUN is a run, its final model or a checkpoint. Transformers, vLLM and others load what is written without
    peft and without the base model.

    \b
    Examples:
      partway export runs/gsm8k --merged models/gsm8k
      partway export runs/gsm8k/checkpoint-500 --merged models/step500
    """
    directory = Path(merged)
    if directory.exists():
        raise ConfigError(f"--merged {merged}: is there already; name a new directory")
    from partway.tracking.publishing import write_merged  # brings torch

    write_merged(Path(run), directory)
    click.echo(str(directory))
