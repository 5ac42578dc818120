"""`partway bench`: each benchmark measures ratios against a stated baseline in one run."""

from __future__ import annotations

import click

from partway.cli import LazyGroup

BENCHMARKS = {
    "trace": "Tracing solutions: interpreter and workers against ast.parse and a process per program.",
    "buffer": "Buffers of many problems: memory, time to consider, to save and to load.",
    "sample": "Drawing n samples: the sampling tree against generate and generate_batch.",
    "learn": "Learning from buffers: the learning tree against padded flat rows.",
    "train": "Whole steps: explore and learn against the straightforward loop.",
}


@click.group(cls=LazyGroup, package="partway.cli.benches", commands=BENCHMARKS)
def command() -> None:
    """Measure against a stated baseline; ratios in one run, never absolute claims.

    \b
    Examples:
      partway bench trace
      partway bench sample --json
    """
