"""Buffers as tables on standard output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from partway.buffer import Verdict

if TYPE_CHECKING:
    from partway.reports.buffers import BufferSummary, Explored, Import

QUESTION = 60  # characters shown of a question


def show_buffers(run: str, summary: BufferSummary, top: int) -> None:
    """Kinds with their lengths, verdicts, and the two ends of the list of problems."""
    console = Console()
    title = f"{escape(run)} at step {summary.step:,}: {len(summary.problems):,} problems"
    kinds = _table(title, "kept", "solutions", "per problem", "steps, mean", "fewest", "most")
    problems = max(1, len(summary.problems))
    for kind, count in summary.solutions.items():
        name = kind.replace("_", "-")
        if kind == "fully_correct":
            name += f" ({summary.references:,} references)"
        kinds.add_row(name, f"{count:,}", f"{count / problems:.2f}", *_lengths(summary.lengths[kind]))
    console.print(kinds)
    console.print()
    console.print(_verdicts("self-samples", summary.verdicts))
    for name, shown in (("most", summary.problems[:top]), ("least", summary.problems[::-1][:top])):
        console.print()
        console.print(_explored(f"{name} explored", shown))


def show_import(source: Path, imported: Import) -> None:
    """What became of the solutions."""
    table = _verdicts(f"solutions of {escape(str(source))}, run again", imported.verdicts)
    if imported.unknown:
        table.caption = (
            f"{imported.unknown:,} problems of {escape(str(source))} are not among these: left out"
        )
        table.caption_justify = "left"
    Console().print(table)


def _lengths(counts: Mapping[int, int]) -> tuple[str, str, str]:
    if not counts:
        return "", "", ""
    mean = sum(length * count for length, count in counts.items()) / sum(counts.values())
    return f"{mean:.1f}", str(min(counts)), str(max(counts))


def _verdicts(title: str, verdicts: Mapping[Verdict, int]) -> Table:
    total = sum(verdicts.values())
    table = _table(f"{title}: {total:,}", "verdict", "count", "share")
    for verdict in Verdict:
        count = verdicts.get(verdict, 0)
        table.add_row(verdict.replace("_", " "), f"{count:,}", f"{100 * count / total:.1f}%" if total else "")
    return table


def _explored(title: str, problems: Sequence[Explored]) -> Table:
    table = _table(title, "problem", "FCS", "PCS", "samples", "question")
    for problem in problems:
        question = " ".join(problem.question.split())
        shown = question if len(question) <= QUESTION else f"{question[: QUESTION - 1]}…"
        counts = (problem.fully_correct, problem.partially_correct, problem.samples)
        table.add_row(escape(problem.problem), *(f"{count:,}" for count in counts), escape(shown))
    return table


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        is_text = heading in (headings[0], "question")
        table.add_column(heading, justify="left" if is_text else "right")
    return table
