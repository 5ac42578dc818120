"""`partway compare`: trains arms from one start with one budget and measures them alike."""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from partway.cli.options import AS_JSON, Callback, counted, declared, out, samples, say_next
from partway.errors import ProblemError

if TYPE_CHECKING:
    from partway.arms.experiment import Experiment
    from partway.arms.outcomes import Outcome
    from runreports.number_tables import Cell, Column

logger = logging.getLogger(__name__)
COUNT = click.IntRange(min=1)
DATA = declared(
    "--data",
    type=click.Path(exists=True, file_okay=False),
    help="A folder with train.jsonl, dev.jsonl and test.jsonl, in place of the built-in problems.",
)
MODEL = declared("--model", help="The model that every arm starts from; needed with --data.")
JOBS = declared(
    "--jobs", type=COUNT, help="How many arms train at once.  [default: one for each GPU, else for each core]"
)


def seeds(default: str) -> Callable[[Callback], Callback]:
    """`--seeds`, how many; `default` is told."""
    told = f"How many seeds, each with problems of its own.  [default: {default}]"
    return declared("--seeds", type=COUNT, help=told)


@click.command()
@click.argument(
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    required=False,
    metavar="[ARMS.yaml]",
)
@declared("--arms", metavar="NAME,...", help="The arms to compare; all others are compared with the first.")
@declared("--list", "lists", is_flag=True, help="Show the arms there are, each with its source.")
@seeds("3")
@DATA
@MODEL
@declared("--steps", type=COUNT, help="Optimiser steps of each arm.  [default: 200]")
@declared("--eval-steps", type=COUNT, help="Steps between two evaluations on dev.  [default: 50]")
@declared("--batch-size", type=COUNT, help="Problems of a step.  [default: 32]")
@declared("--num-generations", type=COUNT, help="Samples per problem and step.  [default: 1]")
@declared("--train", type=COUNT, help="Training problems of a seed.  [default: 200]")
@declared(
    "--references",
    type=click.IntRange(min=0),
    help="Training problems that keep their reference; the others have the answer only.  [default: all]",
)
@declared("--dev", type=COUNT, help="Dev problems of a seed.  [default: 100]")
@declared("--test", type=COUNT, help="Test problems of a seed.  [default: 200]")
@samples(None, "test_samples", told="  [default: 100]")
@out(default="comparison", show_default=True)
@JOBS
@AS_JSON
@click.pass_context
def command(
    ctx: click.Context,
    /,
    file: Path | None,
    arms: str | None,
    lists: bool,
    out: str,
    jobs: int | None,
    as_json: bool,
    **others: Any,
) -> None:
    """Compare ways of learning (arms) that start from the same weights and get the same problems and budget.

    Every arm makes the same number of steps and, if it samples, draws the same number of samples; a table
    shows what each spent in tokens and time. Models are chosen by the same rules, on dev. If a comparison is
    stopped, the same command continues it; if an arm is added later, only that one runs.

    An arm is a YAML file with a label, its source and its settings, which are keys of `partway train`.
    ARMS.yaml names arms (`arms:`, shipped ones or files) and may set the other numbers (`seeds`, `steps`,
    `model` ...).

    \b
    Examples:
      partway compare --list
      partway compare --arms mle,fcs,fcs+pcs --out comparison
      partway compare --arms mle,my_arm.yaml --data data/gsm8k --model MODEL
      partway compare arms.yaml --seeds 5
    """
    from partway.arms.experiment import read_experiment

    if lists:
        list_arms()
        return
    # The other options are called as the keys of ARMS.yaml are, and only what is given overrides those.
    given = {key: value for key, value in others.items() if value is not None}
    if arms is not None:
        given["arms"] = [name.strip() for name in arms.split(",")]
    experiment = read_experiment(file, given)
    check(experiment)
    outcomes = run_comparison(experiment, Path(out), jobs, as_json, quiet=ctx.obj["quiet"])
    sampled = max(outcomes, key=lambda one: one.spent.samples)
    if not as_json and sampled.run is not None:
        say_next(f"partway explore {sampled.run.directory}")


def run_comparison(
    experiment: Experiment, out: Path, jobs: int | None, as_json: bool, quiet: bool
) -> list[Outcome]:
    """Run what is missing, write the files and show the tables."""
    names = ", ".join(arm.label for arm in experiment.arms)
    logger.info("%s: each is measured on %s", names, counted(experiment.test, "test problem"))
    from partway.arms.side_by_side import arms_at_once, run_arms
    from partway.arms.tables import write_comparison
    from runreports.writing import read_study, write_study

    outcomes = run_arms(experiment, out, jobs or arms_at_once(), quiet)
    logger.info("drawing the figures and the page of %s (some seconds)", counted(len(outcomes), "run"))
    # Arms without training of their own have no curves: only the others are in the report.
    labels = {one.run.directory: one.arm.label for one in outcomes if one.run and one.arm.trains}
    study = read_study([*labels], labels)
    write_study(study, out / "report", title="Runs compared")
    page = write_comparison(experiment, outcomes, out, study, f"partway {shlex.join(sys.argv[1:])}")
    if as_json:
        click.echo((out / "comparison.json").read_text(encoding="utf-8"))
        return outcomes
    show_comparison(experiment, outcomes)
    click.echo(f"\nThe page: {page}")
    return outcomes


def show_comparison(experiment: Experiment, outcomes: Sequence[Outcome]) -> None:
    """Every table, under each value its interval; then how models were chosen."""
    from rich.console import Console

    from partway.arms.tables import all_tables
    from partway.cli.table_style import plain_table

    for table in all_tables(experiment, outcomes):
        # pass@k is headed @k, so that it fits a terminal.
        headings = [column.heading.replace("pass@", "@") for column in table.columns]
        headings = [one if " - " in one else one.replace(" ", "\n") for one in headings]
        drawn = plain_table(*headings, title=table.caption)
        for number, row in enumerate(table.rows):
            cells = (_cell(cell, column) for cell, column in zip(row, table.columns, strict=True))
            marked = ((cell, (number, place) in table.marks) for place, cell in enumerate(cells))
            drawn.add_row(*(f"[bold]{cell}[/bold]" if is_best else cell for cell, is_best in marked))
        Console().print(drawn)
        click.echo()
    for rule in experiment.rules():
        click.echo(rule)


def _cell(cell: Cell, column: Column) -> str:
    from partway.arms.tables import shown
    from partway.evaluation import Estimate

    if not isinstance(cell, Estimate):
        return shown(cell, column)
    sign = "+" if " - " in column.heading else ""  # a difference
    low, high = (f"{100 * bound:{sign}.0f}" for bound in (cell.low, cell.high))
    between = " to " if sign else "-"
    return f"{100 * cell.value:{sign}.1f}\n{low}{between}{high}"


def check(experiment: Experiment) -> None:
    """Tell a mistake in a file or in an arm's settings before anything is trained."""
    train = experiment.problems(experiment.seeds[0])["train"]
    given = sum(problem.reference is not None for problem in train)
    if experiment.references is None and given < len(train):
        raise ProblemError(
            f"{given} of {len(train)} training problems have a reference; say so with --references {given}"
        )
    for arm in experiment.arms:
        experiment.seen_by(arm, train)
        experiment.training_config(arm, experiment.seeds[0], Path("run"))


def list_arms() -> None:
    """Every shipped arm: its name, its label, its source."""
    from rich.console import Console

    from partway.arms.arms import shipped_arms
    from partway.cli.table_style import plain_table

    table = plain_table("arm", "in tables", "what it is, or whose")
    for column in table.columns:
        column.justify = "left"
    for arm in shipped_arms().values():
        table.add_row(arm.name, arm.label, arm.source)
    Console().print(table)
    say_next("partway compare --arms mle,fcs,fcs+pcs")
