"""`partway demo`, a table in the terminal and a page; and `partway data storyproblems`."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from partway import __version__
from partway.arms.compare import JOBS, run_comparison, seeds
from partway.cli.options import AS_JSON, declared, out
from partway.data.commands import OUT, finish
from partway.files import atomic_writer

if TYPE_CHECKING:
    from partway.arms.experiment import Experiment
    from partway.arms.outcomes import Outcome
    from partway.demo.storyproblems import Level

COUNT = click.IntRange(min=0)
SHOWN = "shown.json"


@click.command()
@out("demo, or demo-SIZE for another size")
@declared(
    "--paper",
    is_flag=True,
    help="The paper's setting: every problem has its reference, and the model already knows such problems.",
)
@declared("--quick", is_flag=True, help="A taste in about a minute; too small to prove anything.")
@declared(
    "--full",
    is_flag=True,
    help="The paper's table: its setting with three seeds and all objectives, in about half an hour.",
)
@seeds("1, with --full 3")
@JOBS
@AS_JSON
@click.pass_context
def command(
    ctx: click.Context,
    out: str | None,
    paper: bool,
    quick: bool,
    full: bool,
    seeds: int | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Train a tiny model where few problems have a written solution and many an answer only, in minutes.

    A model that knows a little learns from 64 story problems that have a solution (MLE), or from these and
    1,216 that have an answer only (FCS+PCS). For comparison, the table shows what all 1,280 solutions would
    give, the model before training, and chance. The checkpoint with the best pass@1 on dev is measured on
    test problems. If a demo is stopped, the same command continues it; once finished, it shows its table
    again. `partway compare` does the same with problems and models of your own.

    \b
    Examples:
      partway demo
      partway demo --quick
      partway demo --seeds 3 --out demo3
      partway demo --paper
    """
    from partway.demo import sizes

    if full and (quick or paper):
        raise click.UsageError("--full is a size of its own; leave out --quick and --paper")
    chosen = {"paper": paper, "quick": quick, "full": full}
    size = "-".join(word for word, is_chosen in chosen.items() if is_chosen) or "normal"
    experiment = sizes.experiment_named(size)
    if seeds is not None:
        experiment = replace(experiment, seeds=tuple(range(seeds)))
    directory = Path(out or ("demo" if size == "normal" else f"demo-{size}"))
    if size == "normal":
        experiment = replace(experiment, model=sizes.base_model(directory / "base", ctx.obj["quiet"]))
    text = shown_before(experiment, directory) or run_and_show(experiment, directory, jobs, ctx.obj["quiet"])
    click.echo((directory / "comparison.json").read_text(encoding="utf-8") if as_json else text)


class Screen(io.StringIO):
    """Keeps what is shown, in colours if standard output has them."""

    def isatty(self) -> bool:
        return sys.__stdout__ is not None and sys.__stdout__.isatty()


def run_and_show(experiment: Experiment, directory: Path, jobs: int | None, quiet: bool) -> str:
    """Run what is missing; returns the tables and an example, which are kept in the directory, too."""
    with redirect_stdout(Screen()) as screen:
        outcomes = run_comparison(experiment, directory, jobs, as_json=False, quiet=quiet)
        show_example(outcomes)
    runs = sorted({one.run.directory.name for one in outcomes if one.run is not None})
    kept = {"asked": _asked(experiment), "runs": runs, "shown": screen.getvalue().rstrip()}
    with atomic_writer(directory / SHOWN) as stream:
        json.dump(kept, stream)
    return str(kept["shown"])


def shown_before(experiment: Experiment, directory: Path) -> str | None:
    """What the same demo has shown, None if it was not finished or a run is gone."""
    from partway.runs import Run

    if not (directory / SHOWN).exists():
        return None
    kept = json.loads((directory / SHOWN).read_text(encoding="utf-8"))
    is_whole = all(Run(directory / name).is_finished for name in kept["runs"])
    return kept["shown"] if is_whole and kept["asked"] == _asked(experiment) else None


def _asked(experiment: Experiment) -> str:
    """All that decides what is shown."""
    return json.dumps([__version__, asdict(experiment)], default=str)


def show_example(outcomes: Sequence[Outcome]) -> None:
    """One problem that tells most, the solutions that the model found of it, and what opens the explorer."""
    from partway.arms.outcomes import of_arm
    from partway.cli.trace_tables import Shown, show, show_against
    from partway.language import trace
    from runreports.example import example_of
    from runreports.writing import read_study

    runs = [of_arm(outcomes, name)[0].run for name in ("fcs+pcs", "mle")]
    directories = [str(run.directory) for run in runs if run is not None]
    example = example_of(read_study(directories[:1]))
    if example is not None:
        buffer = example.buffer
        given = "first found" if buffer.problem.reference is None else "given"
        first, *full = [Shown(given, trace(one)) for one in buffer.fully_correct[:2]]
        others = [Shown("self-sampled, fully correct", one.trace) for one in full]
        part = [trace(one) for one in buffer.partially_correct[:1]]
        others += [Shown("self-sampled, partially correct", one) for one in part]
        click.echo(f"\n{buffer.problem.question}")
        show_against(first, others) if others else show([first])
        click.echo(example.learned)
    click.echo(f"\nProblems, solutions and states: partway explore {' '.join(directories)}")


@click.command()
@declared("--train", type=COUNT, default=600, show_default=True, help="How many problems to train on.")
@declared("--dev", type=COUNT, default=200, show_default=True, help="How many problems to choose a model by.")
@declared("--test", type=COUNT, default=200, show_default=True, help="How many problems to test on.")
@declared("--seed", type=int, default=0, show_default=True, help="The same seed gives the same files.")
@declared(
    "--difficulty",
    type=click.Choice(["easy", "medium", "hard", "mixed"]),
    default="mixed",
    show_default=True,
    help="How many steps the problems take.",
)
@declared(
    "--holdout-situations",
    default="",
    metavar="NAMES|NUMBER",
    help="Situations only for the test split, which gets no others: names separated by commas, or a number.",
)
@OUT
@AS_JSON
def storyproblems(
    train: int,
    dev: int,
    test: int,
    seed: int,
    difficulty: Level,
    holdout_situations: str,
    out: Path,
    as_json: bool,
) -> None:
    """Make word problems with a built-in generator: nothing is downloaded, and each has many solutions.

    \b
    Examples:
      partway data storyproblems --train 600 --dev 200 --test 200 --out stories
      partway data storyproblems --difficulty hard --seed 1 --out hard
    """
    from partway.demo.storyproblems import generate_splits

    names = [name.strip() for name in holdout_situations.split(",") if name.strip()]
    # A single number says how many; anything else is names.
    held_out = int(names[0]) if len(names) == 1 and names[0].isdecimal() else names
    conversion = generate_splits(
        train, dev, test, seed=seed, difficulty=difficulty, holdout_situations=held_out
    )
    finish(conversion, out, None, as_json)
