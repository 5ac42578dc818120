"""`partway buffer`: what a run has kept, as tables, as a data set, or as a beginning for a new run."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from partway.cli.options import reads_runs
from partway.errors import ConfigError, RunError


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--top", default=5, show_default=True, help="How many of the most and least explored to show.")
@click.option("--export", "exported", metavar="FILE", help="Write solutions to FILE.jsonl or FILE.parquet.")
@click.option(
    "--kind",
    type=click.Choice(["all", "fully_correct", "partially_correct"]),
    default="all",
    show_default=True,
    help="Which solutions to export.",
)
@click.option(
    "--for",
    "trainer",
    type=click.Choice(["sft", "dpo", "kto"]),
    default="sft",
    show_default=True,
    help="Which of TRL's trainers is to read the export.",
)
@click.option(
    "--rejudge",
    "rejudged",
    metavar="KEY=VALUE,...",
    multiple=True,
    help="Judge the recorded samples by other rules.",
)
@click.option(
    "--slowest", type=click.IntRange(1), metavar="N", help="Run samples again: which problems' are slowest?"
)
@click.option("--import", "source", metavar="SOURCE", help="Begin RUN with the solutions of a run or a file.")
@click.option("--problems", metavar="FILE", help="The problems of the new run.  [default: those of SOURCE]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@reads_runs
@click.pass_context
def command(
    ctx: click.Context,
    run: str,
    top: int,
    exported: str | None,
    kind: str,
    trainer: str,
    rejudged: tuple[str, ...],
    slowest: int | None,
    source: str | None,
    problems: str | None,
    as_json: bool,
) -> None:
    """What a run has kept: solutions by kind and length, verdicts, the most and least explored problems.

    --export writes rows of prompt, completion, problem_id and kind, which datasets loads and TRL's SFTTrainer
    trains on; of a run with a chat template, prompt and completion are messages. TRL adds an end-of-text
    token to every completion, which only fully-correct ones should have: give it --kind fully_correct.
    --for dpo writes pairs from the run's samples instead: where a wrong one leaves the kept solutions, its
    rest is `rejected` and theirs `chosen`; the prompt holds the steps before, all of it as text.
    --for kto writes the same as single completions with a `label`.

    --rejudge gives the run's recorded samples to fresh buffers with other settings (self_sampling, state,
    dedup, dead_ends, spurious, length_tolerance, length_limit, max_solutions_per_problem) and shows what each
    would have kept, beside the run's own. That takes seconds in place of a training; but a model that had
    learned by those rules would have drawn other samples.

    --slowest runs each distinct sample once more, by itself, and shows which problems' programs take most
    time, and how many ran out of time or memory.

    --import runs every solution of SOURCE (a run, its buffer.jsonl or an exported file) again and writes
    those that hold to RUN/imported_buffer.jsonl, for a run that is yet to begin: train it with --buffer_file.

    \b
    Examples:
      partway buffer runs/gsm8k
      partway buffer runs/gsm8k --export solutions.parquet --kind fully_correct
      partway buffer runs/gsm8k --export pairs.jsonl --for dpo
      partway buffer runs/gsm8k --rejudge state=set --rejudge dedup=alpha,dead_ends=drop
      partway buffer runs/gsm8k --slowest 10
      partway buffer runs/second --import runs/first
      partway buffer runs/second --import solutions.jsonl --problems train.jsonl
    """
    given = {
        "--import": source is not None,
        "--export": exported is not None,
        "--rejudge": bool(rejudged),
        "--slowest": slowest is not None,
    }
    if sum(given.values()) > 1:
        names = " and ".join(name for name, is_given in given.items() if is_given)
        raise click.UsageError(f"{names} cannot be given together")
    quiet = ctx.obj["quiet"]
    if source is not None:
        _import(Path(run), Path(source), problems, as_json, quiet)
    elif exported is not None:
        _export(run, Path(exported), kind, trainer, as_json)
    elif rejudged:
        _rejudge(run, rejudged, as_json)
    elif slowest is not None:
        _slowest(run, slowest, as_json)
    else:
        _show(run, top, as_json)


def _show(run: str, top: int, as_json: bool) -> None:
    from partway.reports.buffers import summarize_buffers
    from partway.runs import Run

    summary = summarize_buffers(Run.at(run))
    if as_json:
        click.echo(json.dumps({"run": run, **summary.to_json(top)}, ensure_ascii=False))
        return
    # Here and below: rich, which draws tables, takes a while to import, and JSON does not need it.
    from partway.reports.buffer_tables import show_buffers

    show_buffers(run, summary, top)


def _rejudge(run: str, changes: tuple[str, ...], as_json: bool) -> None:
    from partway.reports.rejudging import parse_changes, rejudge
    from partway.runs import Run
    from partway.runs.checkpoints import lost_logs

    parsed = [{}, *map(parse_changes, changes)]  # the run's own rules first
    found = [rejudge(Run.at(run), settings) for settings in parsed]
    for name in lost_logs(Run.at(run)):
        click.echo(f"partway: {name} has lost lines: what follows is about the rest", err=True)
    if as_json:
        click.echo(json.dumps({"run": run, "rejudged": [asdict(one) for one in found]}))
        return
    from partway.reports.buffer_tables import show_rejudged

    show_rejudged(run, found)


def _slowest(run: str, count: int, as_json: bool) -> None:
    from partway.reports.slow_programs import costs
    from partway.runs import Run

    found = costs(Run.at(run))
    if as_json:
        click.echo(
            json.dumps(
                {
                    "run": run,
                    "slowest": [{**vars(cost), "stopped": dict(cost.stopped)} for cost in found[:count]],
                }
            )
        )
        return
    from partway.reports.buffer_tables import show_costs

    show_costs(found, count)


def _export(run: str, path: Path, kind: str, trainer: str, as_json: bool) -> None:
    from partway.buffer.buffer import KINDS
    from partway.reports.buffers import export_buffers
    from partway.reports.preferences import export_preferences
    from partway.runs import Run

    if not path.parent.is_dir():
        raise ConfigError(f"--export {path}: there is no directory {path.parent}; make it, or name another")
    if trainer != "sft" and kind != "all":
        raise click.UsageError(f"--kind chooses kept solutions; --for {trainer} exports samples beside them")
    if trainer == "sft":
        counts = export_buffers(Run.at(run), path, KINDS if kind == "all" else (kind,))
    else:
        counts = export_preferences(Run.at(run), path, trainer)
    if as_json:
        click.echo(json.dumps({"run": run, "file": str(path), **counts}))
    else:
        told = " and ".join(f"{count:,} {kind.replace('_', '-')}" for kind, count in counts.items())
        click.echo(f"{path}: {told or 'no'} {'solutions' if trainer == 'sft' else 'rows'}")


def _import(run: Path, source: Path, problems_file: str | None, as_json: bool, quiet: bool) -> None:
    from partway.problems import load_problems
    from partway.reports.buffers import import_buffers, problems_in, rules_in, write_import
    from partway.runs import Run

    # Buffers of a run that has begun follow from its samples; others would make a resumed run another one.
    if Run(run).is_started:
        raise RunError(f"{run}: this run has begun already; solutions are for one that is yet to begin")
    rules, language = rules_in(source)
    if problems_file is None:
        problems = problems_in(source)
    else:
        problems = load_problems(problems_file, language=language)
    imported = import_buffers(source, problems, rules, language)
    path = Run(run).imported_buffers
    write_import(path, imported)
    if as_json:
        counts = {"verdicts": imported.verdicts, "unknown_problems": imported.unknown}
        click.echo(json.dumps({"file": str(path), "problems": len(imported.buffers), **counts}))
        return
    from partway.reports.buffer_tables import show_import

    show_import(source, imported)
    click.echo(str(path))
    if not quiet:
        click.echo(
            f"partway: next: partway train CONFIG.yaml --output_dir {run} --buffer_file {path}", err=True
        )
