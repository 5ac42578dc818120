"""`partway demo`, a table in the terminal and a page; and `partway data storyproblems`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from partway.data.commands import AS_JSON, OUT, finish

if TYPE_CHECKING:
    from partway.arms import Experiment, Outcome
    from partway.demo.storyproblems import Level
    from partway.evaluation import Estimate

EXAMPLES = 3  # problems whose solutions are shown in the terminal


@click.command()
@click.option(
    "--out", help="Where run directories and the page go; demo, demo-quick or demo-full if left out."
)
@click.option("--quick", is_flag=True, help="A taste in about a minute; too small to prove anything.")
@click.option(
    "--full", is_flag=True, help="Three seeds, all objectives: the paper's table, in half an hour or so."
)
@click.option("--seeds", type=click.IntRange(min=1), help="How many seeds, each with its own problems.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder with train.jsonl, dev.jsonl and test.jsonl instead of the built-in problems.",
)
@click.option("--model", help="The pretrained model to start from; needed with --data.")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Arms at a time; default: as there are cores, on a GPU one."
)
@click.option("--pretrain", is_flag=True, help="Make the pretrained model anew in OUT, as it was made.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as one JSON object.")
@click.pass_context
def command(
    ctx: click.Context,
    out: str | None,
    quick: bool,
    full: bool,
    seeds: int | None,
    data: Path | None,
    model: str | None,
    jobs: int | None,
    pretrain: bool,
    as_json: bool,
) -> None:
    """MLE against self-sampling on built-in problems with a tiny pretrained model, or on your own.

    Every arm starts from the same weights and makes the same steps on the same problems; the checkpoint
    with the best pass@1 on dev is measured on test problems. A demo that was stopped goes on where it was.

    \b
    Examples:
      partway demo
      partway demo --quick
      partway demo --seeds 5 --out demo5
      partway demo --data data/mathqa --model runs/pretrained/final --out demo-mathqa
    """
    from partway.arms.experiment import OWN_LENGTH
    from partway.arms.side_by_side import arms_at_once, run_arms
    from partway.demo import sizes
    from partway.reports import write_report

    if quick and full:
        raise click.UsageError("--quick and --full exclude each other; choose one")
    if (data is None) != (model is None):
        raise click.UsageError("--data and --model go together: problems, and a model that has learned such")
    if pretrain:  # the built-in model took minutes to make, so it is shipped
        sizes.pretrain(Path(out or "tiny-storyproblems"))
        return
    size = "quick" if quick else "full" if full else "normal"
    experiment = sizes.experiment_named(size)
    if seeds is not None:
        experiment = replace(experiment, seeds=tuple(range(seeds)))
    if data is not None and model is not None:
        experiment = replace(experiment, data=data, model=model, max_completion_length=OWN_LENGTH)
        experiment.problems(0)  # so that a mistake in a file is told before anything is trained
    directory = Path(out or ("demo" if size == "normal" else f"demo-{size}"))
    outcomes = run_arms(experiment, directory, jobs or arms_at_once(), ctx.obj["quiet"])
    page = write_report(
        [outcome.run for outcome in outcomes if outcome.run], directory / "report", title="partway demo"
    )
    if as_json:
        click.echo(json.dumps(numbers(experiment, outcomes)))
        return
    from partway.arms.compare import show_comparison

    show_comparison(experiment, outcomes)
    show_examples(outcomes)
    click.echo(f"\nThe page: {page}")
    click.echo(f"Problems, solutions and states: {explore_command(outcomes)}")


def explore_command(outcomes: Sequence[Outcome]) -> str:
    """What opens the explorer on the paper's method beside its baseline."""
    from partway.arms.outcomes import of_arm

    runs = [of_arm(outcomes, name)[0].run for name in ("fcs+pcs", "mle")]
    return " ".join(["partway explore", *(str(run.directory) for run in runs if run is not None)])


def numbers(experiment: Experiment, outcomes: Sequence[Outcome]) -> dict[str, object]:
    """Every arm's metrics and their differences to MLE, with intervals."""
    from partway.arms.outcomes import buffer_sizes, gains, means, of_arm

    baseline = of_arm(outcomes, "mle")
    names = [*experiment.metrics, "unique"]
    arms: dict[str, object] = {}
    for arm in experiment.arms:
        own = of_arm(outcomes, arm.name)
        arms[arm.label] = {
            "metrics": _plain(means(own), names),
            "minus_mle": _plain(gains(own, baseline), names),
            "solutions_per_problem": dict(zip(("fcs", "pcs"), buffer_sizes(own), strict=True)),
        }
    return {"seeds": list(experiment.seeds), "test_problems": experiment.test, "arms": arms}


def _plain(estimates: Mapping[str, Estimate], names: Sequence[str]) -> dict[str, dict[str, float]]:
    return {name: asdict(estimates[name]) for name in names}


def show_examples(outcomes: Sequence[Outcome]) -> None:
    """Problems for which the model found another solution and a beginning of one, with their states."""
    from partway.arms.outcomes import of_arm
    from partway.cli.trace_tables import Shown, show_against
    from partway.language import trace

    run = of_arm(outcomes, "fcs+pcs")[0].run
    assert run is not None, "it trains"
    kept = run.buffers()
    buffers = (kept[problem.id] for problem in run.problems())
    # The first fully-correct one is the reference, so a second one was found by the model.
    telling = (one for one in buffers if len(one.fully_correct) > 1 and one.partially_correct)
    for buffer in islice(telling, EXAMPLES):
        click.echo(f"\n{buffer.problem.question}")
        found = {
            "self-sampled, fully correct": buffer.fully_correct[1],
            "self-sampled, partially correct": buffer.partially_correct[0],
        }
        reference = Shown("given", trace(buffer.fully_correct[0]))
        show_against(reference, [Shown(name, trace(solution)) for name, solution in found.items()])


@click.command()
@click.option("--train", type=click.IntRange(min=0), default=600, show_default=True)
@click.option("--dev", type=click.IntRange(min=0), default=200, show_default=True)
@click.option("--test", type=click.IntRange(min=0), default=200, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed, the same bytes.")
@click.option(
    "--difficulty", type=click.Choice(["easy", "medium", "hard", "mixed"]), default="mixed", show_default=True
)
@click.option(
    "--holdout-situations",
    default="",
    metavar="NAMES|NUMBER",
    help="Situations that only the test split has, and nothing else in it: names with commas, or how many.",
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
    """Word problems from a built-in generator: no downloads, many solution paths each.

    \b
    Examples:
      partway data storyproblems --train 600 --dev 200 --test 200 --seed 0 --out data/stories
      partway data storyproblems --difficulty hard --holdout-situations 5 --out data/hard
    """
    from partway.demo.storyproblems import generate_splits

    names = [name.strip() for name in holdout_situations.split(",") if name.strip()]
    # A single number says how many; anything else is names.
    held_out = int(names[0]) if len(names) == 1 and names[0].isdecimal() else names
    conversion = generate_splits(
        train, dev, test, seed=seed, difficulty=difficulty, holdout_situations=held_out
    )
    finish(conversion, out, None, as_json)
