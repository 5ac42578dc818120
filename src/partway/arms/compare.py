"""`partway compare`: arms from one start with one budget, measured alike; tables, a page and a JSON file."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from partway.errors import ProblemError

if TYPE_CHECKING:
    from partway.arms import Experiment, Outcome
    from partway.reports.number_tables import Cell, Column

COUNT = click.IntRange(min=1)


@click.command()
@click.argument(
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    required=False,
    metavar="[ARMS.yaml]",
)
@click.option("--arms", metavar="NAME,...", help="Which arms; the first is what others are compared with.")
@click.option("--list", "lists", is_flag=True, help="Show the arms there are, each with its source.")
@click.option("--seeds", type=COUNT, help="How many seeds, each with its own problems.  [default: 3]")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False),
    help="A folder with train.jsonl, dev.jsonl and test.jsonl instead of the built-in problems.",
)
@click.option("--model", help="The model that every arm starts from; needed with --data.")
@click.option("--steps", type=COUNT, help="Optimiser steps of every arm.  [default: 200]")
@click.option("--eval-steps", type=COUNT, help="Steps between looks at dev.  [default: 50]")
@click.option("--batch-size", type=COUNT, help="Problems of a step.  [default: 32]")
@click.option("--num-generations", type=COUNT, help="Samples of each.  [default: 1]")
@click.option("--train", type=COUNT, help="Training problems of a seed.  [default: 200]")
@click.option(
    "--references",
    type=click.IntRange(min=0),
    help="Training problems that keep their reference; the others have the answer only.  [default: all]",
)
@click.option("--dev", type=COUNT, help="Dev problems of a seed.  [default: 100]")
@click.option("--test", type=COUNT, help="Test problems of a seed.  [default: 200]")
@click.option("--samples", "test_samples", type=COUNT, help="Samples of every test problem.  [default: 100]")
@click.option("--out", default="comparison", show_default=True, help="Where runs, tables and the page go.")
@click.option(
    "--jobs",
    type=COUNT,
    help="Arms at a time, a core each; default: as many as there are cores, on a GPU one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as one JSON object.")
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
    """Arms from the same weights, on the same problems, with the same budget: one table, a page, a JSON.

    Every arm makes the same number of steps and, if it samples, draws the same number of samples; what each
    spent in tokens and time is in a table. Models are chosen by the same rules, on dev. A comparison that was
    stopped goes on where it was; an arm added later finds the others done.

    An arm is a YAML file: a label, its source and its settings, keys of `partway train`. ARMS.yaml names arms
    (`arms:`, shipped ones or files) and may give the other numbers (`seeds`, `steps`, `model` ...).

    \b
    Examples:
      partway compare --list
      partway compare --arms mle,fcs,fcs+pcs --out comparison
      partway compare --arms mle,my_arm.yaml --data data/gsm8k --model MODEL
      partway compare arms.yaml --seeds 5
    """
    from partway.arms import read_experiment

    if lists:
        list_arms()
        return
    # The other options are called as the keys of ARMS.yaml are, and only what is given overrides those.
    given = {key: value for key, value in others.items() if value is not None}
    if arms is not None:
        given["arms"] = [name.strip() for name in arms.split(",")]
    experiment = read_experiment(file, given)
    check(experiment)
    run_comparison(experiment, Path(out), jobs, as_json, quiet=ctx.obj["quiet"])


def run_comparison(experiment: Experiment, out: Path, jobs: int | None, as_json: bool, quiet: bool) -> None:
    """Run what is missing, write the files and show the tables."""
    from partway.arms.side_by_side import arms_at_once, run_arms
    from partway.arms.tables import write_comparison
    from partway.reports import write_report

    outcomes = run_arms(experiment, out, jobs or arms_at_once(), quiet)
    # Arms without training of their own have no curves: only the others are in the report.
    labels = {one.run.directory: one.arm.label for one in outcomes if one.run and one.arm.trains}
    report = write_report([*labels], out / "report", title="Runs compared", labels=labels)
    page = write_comparison(experiment, outcomes, out, report, f"partway {shlex.join(sys.argv[1:])}")
    if as_json:
        click.echo((out / "comparison.json").read_text(encoding="utf-8"))
        return
    show_comparison(experiment, outcomes)
    click.echo(f"\nThe page: {page}")


def show_comparison(experiment: Experiment, outcomes: Sequence[Outcome]) -> None:
    """Every table, under each value its interval; then how models were chosen."""
    from rich.console import Console

    from partway.arms.tables import all_tables
    from partway.cli.table_style import plain_table

    for table in all_tables(experiment, outcomes):
        # pass@k is headed @k, so that it fits a terminal.
        headings = [column.heading.replace("pass@", "@") for column in table.columns]
        drawn = plain_table(*headings, title=table.caption)
        for row in table.rows:
            drawn.add_row(*(_cell(cell, column) for cell, column in zip(row, table.columns, strict=True)))
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
    return f"{100 * cell.value:{sign}.1f}\n[dim]{low}{between}{high}[/dim]"


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

    from partway.arms import shipped_arms
    from partway.cli.table_style import plain_table

    table = plain_table("arm", "", "")
    for arm in shipped_arms().values():
        table.add_row(arm.name, arm.label, arm.source)
    Console().print(table)
