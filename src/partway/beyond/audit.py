"""`partway buffer audit`: which fully-correct solutions of a run are right by luck."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass

import click

from partway.beyond.luck import audits_of
from partway.beyond.variation import Belief
from partway.cli.options import AS_JSON, RUN, counted, patience, reads_runs, say_next
from partway.errors import visible
from partway.runs import Run


@dataclass(frozen=True)
class Audited:
    """A kept solution, and whether it still does what it should with other numbers in the question."""

    problem: str
    solution: str
    verdict: Belief
    reason: str


@click.command()
@RUN
@AS_JSON
@reads_runs
def command(run: str, as_json: bool) -> None:
    """Find kept solutions that are right by luck.

    Every fully-correct solution that the model wrote is run with other numbers in place of the question's,
    and so is the reference. A solution that then differs from the reference is right by luck. Where there is
    no reference, a solution that differs from most others is.

    \b
    Examples:
      partway buffer audit runs/gsm8k
      partway buffer audit runs/gsm8k --json
    """
    with patience("running what is kept with other numbers"):
        audited = [
            Audited(buffer.problem.id, solution.text, found.verdict, found.reason)
            for buffer in Run.at(run).buffers().values()
            for solution, found in audits_of(buffer).items()
        ]
    if as_json:
        rows = [asdict(one) for one in audited]
        click.echo(json.dumps({"run": run, "audited": rows}, ensure_ascii=False))
        return
    counts = Counter(one.verdict for one in audited)
    click.echo(counted(len(audited), "self-sampled fully-correct solution"))
    for verdict in ("confirmed", "spurious", "undecided"):
        click.echo(f"  {verdict:<10} {counts[verdict]:>7,} {counts[verdict] / max(1, len(audited)):>7.1%}")
    for one in audited:
        if one.verdict == "spurious":
            click.echo(f"\n{visible(one.problem)}: {visible(one.reason)}\n")
            click.echo("".join(f"  {visible(line)}\n" for line in one.solution.splitlines()), nl=False)
    say_next("partway train CONFIG.yaml --spurious drop" if counts["spurious"] else f"partway browse {run}")
