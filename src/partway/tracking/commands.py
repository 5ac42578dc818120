"""`partway export`: the model of a run, whole, for other programs."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from partway.cli.options import RUN, declared, reads_runs, say_next
from partway.errors import ConfigError

logger = logging.getLogger(__name__)


@click.command()
@RUN
@declared("--merged", metavar="DIR", required=True, help="A new directory for the whole model.")
@reads_runs
def export(run: str, merged: str) -> None:
    """Write the whole model of a run: weights (with a LoRA adapter merged in), tokenizer and template.

    RUN is a run, its final model or a checkpoint. Transformers, vLLM and others load the result without peft
    and without the base model.

    \b
    Examples:
      partway export runs/gsm8k --merged models/gsm8k
      partway export runs/gsm8k/checkpoint-500 --merged models/step500
    """
    directory = Path(merged)
    if directory.exists():
        raise ConfigError(f"--merged {merged}: it exists already; name a new directory")
    logger.info("loading %s (some seconds)", run)
    from partway.tracking.publishing import write_merged  # brings torch

    write_merged(Path(run), directory)
    click.echo(str(directory))
    say_next(f"partway evaluate {directory} --problems TEST.jsonl")
