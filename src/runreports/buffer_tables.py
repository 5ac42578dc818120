"""Buffers as tables on standard output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from partway.buffer import Verdict
from partway.cli.options import counted
from partway.cli.table_style import plain_table
from partway.errors import clipped, visible

if TYPE_CHECKING:
    from runreports.buffers import BufferSummary, Explored, Import
    from runreports.rejudging import Rejudged
    from runreports.slow_programs import Cost

MOST_OF_A_QUESTION = 120  # characters


def show_buffers(run: str, summary: BufferSummary, top: int) -> None:
    """Kinds with their lengths, verdicts, and the two ends of the list of problems."""
    problems = len(summary.problems)
    kinds = plain_table("kept", "solutions", "per problem", "steps, mean", "fewest", "most")
    for kind, count in summary.solutions.items():
        per_problem = f"{count / max(1, problems):.2f}"
        kinds.add_row(kind.replace("_", "-"), f"{count:,}", per_problem, *_lengths(summary.lengths[kind]))
    known = f"{counted(problems, 'problem')}, {summary.references:,} with a reference"
    _print(f"{run} at step {summary.step:,}: {known}", kinds)
    _print(f"\n{counted(sum(summary.verdicts.values()), 'self-sample')}", _verdicts(summary.verdicts))
    _print("\nmost explored", _explored(summary.problems[:top]))
    _print("\nleast explored", _explored(summary.problems[::-1][:top]))


def show_costs(costs: Sequence[Cost], count: int) -> None:
    """The problems whose programs cost most, then the slowest program of each."""
    total = sum(cost.seconds for cost in costs)
    table = plain_table("problem", "seconds", "share", "MB at most", "samples", "out of time", "of memory")
    for cost in costs[:count]:
        limits = (f"{cost.stopped[kind]:,}" for kind in ("timeout", "memory"))
        share, held = cost.seconds / max(total, 1e-9), cost.peak_bytes / 1e6
        shown = (f"{cost.seconds:.3f}", f"{share:.0%}", f"{held:,.0f}" if held else "-", f"{cost.drawn:,}")
        table.add_row(escape(cost.problem), *shown, *limits)
    _print(f"{total:.2f} seconds for the distinct samples of {counted(len(costs), 'problem')}", table)
    for cost in costs[:count]:
        seconds, text = cost.slowest
        program = visible(text.rstrip()).replace("\n", "\n  ")
        _print(f"\nslowest of {cost.problem}, {seconds:.3f} seconds:\n  {program}")


def show_import(source: Path, imported: Import) -> None:
    """What became of the solutions."""
    total = sum(imported.verdicts.values())
    _print(f"{counted(total, 'solution')} of {source}, run again", _verdicts(imported.verdicts))
    if imported.unknown:
        _print(f"problems that the new run does not have, left out: {imported.unknown:,}")


def _print(title: str, table: Table | None = None) -> None:
    console = Console()
    console.print(title, markup=False, highlight=False, soft_wrap=True)
    if table is not None:
        console.print(table)


def show_rejudged(run: str, rejudged: Sequence[Rejudged]) -> None:
    """A column for each set of rules: what it keeps, and what becomes of the samples."""
    table = plain_table("", *(_rules_told(one) for one in rejudged))
    table.columns[0].no_wrap = True
    for kind in rejudged[0].per_problem:
        if any(one.per_problem[kind] for one in rejudged):
            kept = (f"{one.per_problem[kind]:.2f}" for one in rejudged)
            table.add_row(f"{kind.replace('_', '-')} kept", *kept)
    for verdict in Verdict:
        if not verdict.is_optional or any(one.verdicts[verdict] for one in rejudged):
            table.add_row(verdict.replace("_", " "), *(f"{one.verdicts[verdict]:,}" for one in rejudged))
    samples = counted(sum(rejudged[0].verdicts.values()), "self-sample")
    _print(f"{samples} of {run}, judged again; kept solutions are those of one problem", table)


def _rules_told(one: Rejudged) -> str:
    return "\n".join(f"{key}:\n{value}" for key, value in one.settings.items()) or "as it was"


def _lengths(counts: Mapping[int, int]) -> tuple[str, str, str]:
    if not counts:
        return "", "", ""
    mean = sum(length * count for length, count in counts.items()) / sum(counts.values())
    return f"{mean:.1f}", str(min(counts)), str(max(counts))


def _verdicts(verdicts: Mapping[Verdict, int]) -> Table:
    total = max(1, sum(verdicts.values()))
    table = plain_table("verdict", "count", "share")
    for verdict in Verdict:
        count = verdicts.get(verdict, 0)
        if verdict.is_optional and not count:
            continue
        table.add_row(verdict.replace("_", " "), f"{count:,}", f"{100 * count / total:.1f}%")
    return table


def _explored(problems: Sequence[Explored]) -> Table:
    table = plain_table("problem", "FCS", "PCS", "samples")
    table.add_column("question", overflow="fold")
    for problem in problems:
        counts = (problem.fully_correct, problem.partially_correct, problem.samples)
        question = clipped(_plain(problem.question), MOST_OF_A_QUESTION)
        table.add_row(_plain(problem.problem), *(f"{count:,}" for count in counts), question)
    return table


def _plain(text: str) -> str:
    """Text of others on one line, with nothing in it that styles or steers a terminal."""
    return escape(visible(" ".join(text.split())))
