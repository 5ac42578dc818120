"""`python -m benchmarks`: each benchmark measures ratios against a stated baseline in one run."""

from __future__ import annotations

import click

from partway.cli import App, run
from partway.registry import Part

BENCHMARKS = {
    "trace": "Tracing solutions: interpreter and workers against ast.parse and a process per program.",
    "buffer": "Buffers of many problems: memory, time to consider, to save and to load.",
    "spurious": "Solutions right by luck: precision and recall of the check on labelled samples.",
    "sample": "Drawing n samples: the sampling tree against generate and generate_batch.",
    "serve": "Drawing samples: the sampling tree and generate against inference servers.",
    "learn": "Learning from buffers: the learning tree against padded flat rows.",
    "signed": "A policy gradient over 8 samples of a problem: the learning tree against flat rows.",
    "variance": "Groups of samples that all earn the same, with 0/1 rewards and with trace credit.",
    "roof": "Learning and sampling as shares of what the machine's matrix products reach.",
    "train": "Whole steps: explore and learn against the straightforward loop.",
    "growth": "Seconds per step and memory as problems, solutions, samples, models or processes grow.",
}


def parts() -> dict[str, Part]:
    return {name: Part(f"benchmarks.{name}:command", summary) for name, summary in BENCHMARKS.items()}


@click.group(cls=App, parts=parts)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option("-q", "--quiet", is_flag=True, help="Print results only: no progress, no remarks.")
@click.pass_context
def app(ctx: click.Context, debug: bool, quiet: bool) -> None:
    """Measure against a stated baseline; ratios in one run, never absolute claims.

    \b
    Examples:
      python -m benchmarks trace
      python -m benchmarks sample --json
    """
    ctx.obj = {"debug": debug, "quiet": quiet}


if __name__ == "__main__":
    run(app, "python -m benchmarks")
