"""`partway buffer`: what a run has kept, as tables, as a data set, or as a beginning for a new run."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from partway.cli import LazyGroup, commands
from partway.cli.options import AS_JSON, PROBLEMS, RUN, declared, patience, reads_runs, say_next
from partway.errors import ConfigError, RunError

FILE = click.argument("file", metavar="FILE", type=click.Path(path_type=Path))


@click.group(cls=LazyGroup, parts=partial(commands, "buffer"), usual="show")
def command() -> None:
    """Look at what a run has kept of its samples, or use it elsewhere.

    `partway buffer RUN` is short for `partway buffer show RUN`.

    \b
    Examples:
      partway buffer show runs/gsm8k
      partway buffer export runs/gsm8k solutions.jsonl
    """


@click.command()
@RUN
@declared("--top", default=5, show_default=True, help="How many of the most and least explored to show.")
@AS_JSON
@reads_runs
def show(run: str, top: int, as_json: bool) -> None:
    """Count what a run has kept: solutions by kind and length, verdicts, most and least explored problems.

    \b
    Examples:
      partway buffer show runs/gsm8k
      partway buffer show runs/gsm8k --json
    """
    from partway.runs import Run
    from runreports.buffers import summarize_buffers

    with patience(f"reading {run}"):
        summary = summarize_buffers(Run.at(run))
    if as_json:
        click.echo(json.dumps({"run": run, **summary.to_json(top)}, ensure_ascii=False))
        return
    # Here and below: rich, which draws tables, takes a while to import, and JSON does not need it.
    from runreports.buffer_tables import show_buffers

    show_buffers(run, summary, top)
    say_next(f"partway browse {run}", f"partway buffer export {run} solutions.jsonl")


@click.command()
@RUN
@FILE
@declared(
    "--kind",
    type=click.Choice(["all", "fully_correct", "partially_correct"]),
    default="all",
    show_default=True,
    help="Which solutions to write.",
)
@AS_JSON
@reads_runs
def export(run: str, file: Path, kind: str, as_json: bool) -> None:
    """Write the kept solutions to FILE.jsonl, for TRL's SFTTrainer.

    A row has a prompt, a completion, a problem_id and a kind. Where the run used a chat template, prompt and
    completion are messages. TRL adds an end-of-text token to every completion, which only fully-correct ones
    should have: give it --kind fully_correct.

    \b
    Examples:
      partway buffer export runs/gsm8k solutions.jsonl
      partway buffer export runs/gsm8k solutions.jsonl --kind fully_correct
    """
    from partway.buffer.buffer import KINDS
    from partway.runs import Run
    from runreports.buffers import export_buffers

    _check_place(file)
    with patience(f"writing {file}"):
        counts = export_buffers(Run.at(run), file, KINDS if kind == "all" else (kind,))
    _tell_written(run, file, counts, "solutions", as_json)


@click.command()
@RUN
@FILE
@declared(
    "--for",
    "trainer",
    type=click.Choice(["dpo", "kto"]),
    default="dpo",
    show_default=True,
    help="Which of TRL's trainers is to read FILE.",
)
@AS_JSON
@reads_runs
def preferences(run: str, file: Path, trainer: str, as_json: bool) -> None:
    """Write right and wrong continuations to FILE.jsonl, for TRL's DPOTrainer or KTOTrainer.

    From the first step at which a wrong sample differs from a kept solution, its rest is `rejected` and that
    of the kept one is `chosen`. The prompt holds the question and the steps before, as text. For kto, every
    continuation is a row with a `label`.

    \b
    Examples:
      partway buffer preferences runs/gsm8k pairs.jsonl
      partway buffer preferences runs/gsm8k labelled.jsonl --for kto
    """
    from partway.runs import Run
    from runreports.preferences import export_preferences

    _check_place(file)
    with patience(f"writing {file}"):
        counts = export_preferences(Run.at(run), file, trainer)
    _tell_written(run, file, counts, "", as_json)


def _check_place(file: Path) -> None:
    if not file.parent.is_dir():
        raise ConfigError(f"{file}: there is no directory {file.parent}; make it, or name another")


def _tell_written(run: str, file: Path, counts: dict[str, int], noun: str, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"run": run, "file": str(file), **counts}))
    else:
        told = " and ".join(f"{count:,} {kind.replace('_', '-')}" for kind, count in counts.items())
        told = f"{told} {noun}".rstrip().removesuffix("s" if [*counts.values()][-1:] == [1] else "")
        click.echo(f"{file}: {told if counts else 'nothing to write'}")
        if counts:
            say_next(f'datasets.load_dataset("json", data_files="{file}"), which TRL takes')


@click.command()
@RUN
@click.argument("changes", nargs=-1, required=True, metavar="KEY=VALUE,...")
@AS_JSON
@reads_runs
def rejudge(run: str, changes: tuple[str, ...], as_json: bool) -> None:
    """Judge the recorded samples of a run by other rules.

    The samples go to fresh buffers with other settings (self_sampling, state, dedup, dead_ends, spurious,
    length_tolerance, length_limit, max_solutions_per_problem). A table shows what each set of settings would
    have kept, beside the run's own. This takes seconds in place of a training; but a model that had learned
    by those rules would have drawn other samples.

    \b
    Examples:
      partway buffer rejudge runs/gsm8k dead_ends=drop
      partway buffer rejudge runs/gsm8k state=set dedup=alpha,dead_ends=drop
    """
    from partway.runs import Run
    from runreports.rejudging import parse_changes
    from runreports.rejudging import rejudge as judged_again
    from runreports.summaries import lost_logs

    parsed = [{}, *map(parse_changes, changes)]  # the run's own rules first
    with patience(f"judging the samples of {run} again"):
        found = [judged_again(Run.at(run), settings) for settings in parsed]
    for name in lost_logs(Run.at(run)):
        click.echo(f"partway: {name} has lost lines: what follows is about the rest", err=True)
    if as_json:
        click.echo(json.dumps({"run": run, "rejudged": [asdict(one) for one in found]}))
        return
    from runreports.buffer_tables import show_rejudged

    show_rejudged(run, found)
    settings = " ".join(f"--{key} {value}" for key, value in parsed[-1].items())
    say_next(f"partway train CONFIG.yaml {settings}")


@click.command()
@RUN
@declared("--most", type=click.IntRange(1), default=10, show_default=True, help="How many problems to show.")
@AS_JSON
@reads_runs
@click.pass_context
def slowest(ctx: click.Context, run: str, most: int, as_json: bool) -> None:
    """Find the problems whose programs take most time and memory.

    Every distinct sample is run once more, by itself. The table shows the slowest program of each problem,
    the most megabytes that one held, and how many ran out of time or memory.

    \b
    Examples:
      partway buffer slowest runs/gsm8k
      partway buffer slowest runs/gsm8k --most 3 --json
    """
    from partway.cli.progress import Bar
    from partway.runs import Run
    from runreports.slow_programs import costs

    with Bar("running the programs", "problems", quiet=ctx.obj["quiet"]) as bar:
        found = costs(Run.at(run), on_progress=bar.show)
    if as_json:
        rows = [{**vars(cost), "stopped": dict(cost.stopped)} for cost in found[:most]]
        click.echo(json.dumps({"run": run, "slowest": rows}))
        return
    from runreports.buffer_tables import show_costs

    show_costs(found, most)
    for worst in found[:1]:
        say_next(f"partway browse {run} --problem {worst.problem}")


@click.command()
@click.argument("source", metavar="SOURCE", type=click.Path(path_type=Path))
@click.argument("run", metavar="NEW_RUN", type=click.Path(path_type=Path))
@PROBLEMS
@AS_JSON
@reads_runs
def import_(source: Path, run: Path, problems: str | None, as_json: bool) -> None:
    """Begin a new run with the solutions of another.

    SOURCE is a run, its buffer.jsonl or an exported file. Every solution is run again, and those that hold
    are written to NEW_RUN/imported_buffer.jsonl: train with --buffer_file and this file.

    \b
    Examples:
      partway buffer import runs/first runs/second
      partway buffer import solutions.jsonl runs/second --problems train.jsonl
    """
    from partway.problems import load_problems
    from partway.runs import Run
    from runreports.buffers import import_buffers, problems_in, rules_in, write_import

    # Buffers of a run that has begun follow from its samples; others would make a resumed run another one.
    if Run(run).is_started:
        raise RunError(f"{run}: this run has begun already; name one that has not")
    rules, language = rules_in(source)
    asked = problems_in(source) if problems is None else load_problems(problems, language=language)
    with patience(f"running the solutions of {source} again"):
        imported = import_buffers(source, asked, rules, language)
    path = Run(run).imported_buffers
    write_import(path, imported)
    if as_json:
        counts = {"verdicts": imported.verdicts, "unknown_problems": imported.unknown}
        click.echo(json.dumps({"file": str(path), "problems": len(imported.buffers), **counts}))
        return
    from runreports.buffer_tables import show_import

    show_import(source, imported)
    click.echo(str(path))
    say_next(f"partway train CONFIG.yaml --output_dir {run} --buffer_file {path}")
