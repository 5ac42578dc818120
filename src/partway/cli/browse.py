"""`partway browse`: the self-samples of a run in a terminal, page by page, with their states."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from partway.buffer import Verdict
from partway.cli.table_style import visible
from partway.errors import ProblemError

if TYPE_CHECKING:
    from partway.problem import Problem
    from partway.runs import Run
    from partway.runs.run import SelfSample

HELP = "Enter next, p previous, NUMBER states, v VERDICT, / TEXT of problem or question, q quit"
VERDICTS = [str(verdict) for verdict in Verdict]


@dataclass(frozen=True)
class View:
    """Which samples are looked at."""

    verdict: str | None = None
    text: str = ""  # in the id or the question of a problem
    page: int = 1
    rows: int = 10


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--verdict", type=click.Choice(VERDICTS), help="Only samples with this verdict.")
@click.option("--problem", default="", metavar="TEXT", help="Only problems with this in id or question.")
@click.option("--page", type=click.IntRange(1), default=1, show_default=True, help="Where to begin.")
@click.option("--rows", type=click.IntRange(1), default=10, show_default=True, help="Samples per page.")
@click.option(
    "--states", type=click.IntRange(1), metavar="N", help="Show the states of sample N of the page."
)
def command(run: str, verdict: str | None, problem: str, page: int, rows: int, states: int | None) -> None:
    """Read what a run sampled: problem, solution, verdict, and the states beside the reference's.

    On a terminal it asks what to show next; elsewhere it prints one page.

    \b
    Examples:
      partway browse runs/demo
      partway browse runs/demo --verdict new_partially_correct --states 1
      partway browse runs/demo --problem bicycle --page 2 | less
    """
    from partway.runs import Run

    found = Run.at(run)
    problems = {one.id: one for one in found.problems()}
    view = View(verdict, problem, page, rows)
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty() and states is None
    samples = show_page(found, problems, view)
    if states is not None:
        show_states(found, problems, samples, states)
    elif is_terminal:
        browse(found, problems, view, samples, lambda: input(f"{HELP} > "))


def selected(run: Run, problems: dict[str, Problem], view: View) -> Iterator[SelfSample]:
    """The samples of all pages, in the order drawn."""
    wanted = view.text.casefold()
    for sample in run.samples():
        problem = problems.get(sample.problem)
        about = f"{sample.problem}\n{problem.question if problem else ''}".casefold()
        if view.verdict in (None, str(sample.verdict)) and wanted in about:
            yield sample


def show_page(run: Run, problems: dict[str, Problem], view: View) -> list[SelfSample]:
    """Print a page; returns its samples."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    first = (view.page - 1) * view.rows
    # One more than is shown tells whether another page follows.
    found = list(islice(selected(run, problems, view), first, first + view.rows + 1))
    samples, has_more = found[: view.rows], len(found) > view.rows
    if not samples:
        click.echo("no samples here" + (" with this verdict or text" if view.verdict or view.text else ""))
        return []
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", "step", "verdict", "problem", "solution"):
        table.add_column(heading, overflow="fold", justify="right" if heading in ("", "step") else "left")
    for number, sample in enumerate(samples, 1):
        verdict = str(sample.verdict).replace("_", " ") + (f" x{sample.count}" if sample.count > 1 else "")
        cells = (
            str(number),
            str(sample.step),
            verdict,
            visible(sample.problem),
            visible(sample.text.strip("\n")),
        )
        table.add_row(*map(escape, cells))
    Console().print(table)
    click.echo(f"page {view.page}{', more follow' if has_more else ', the last'}")
    return samples


def show_states(run: Run, problems: dict[str, Problem], samples: Sequence[SelfSample], number: int) -> None:
    """Print question, answer and the states of a sample, beside those of the reference if there is one."""
    from partway.cli.trace_tables import Shown, show, show_against
    from partway.execution.programs import unshown_tests

    if not 1 <= number <= len(samples):
        raise ProblemError(f"there is no sample {number} on this page; it has {len(samples)}")
    sample, programs = samples[number - 1], run.programs
    problem, text = problems.get(sample.problem), sample.traced_text.strip("\n")
    shown = Shown.of("sample", text, programs.trace_all([text])[0], programs)
    if problem is not None:
        tests = unshown_tests(problem.question, problem.answer, programs)
        right = f"answer: {problem.answer!r}" if tests is None else visible("\n".join(tests))
        click.echo(f"{visible(problem.question)}\n{right}\n")
    if problem is None or problem.reference is None:
        show([shown], programs)
    else:
        reference = problem.reference.text
        show_against(Shown("reference", programs.trace_all([reference])[0]), [shown], programs)


def browse(
    run: Run,
    problems: dict[str, Problem],
    view: View,
    samples: Sequence[SelfSample],
    ask: Callable[[], str],
) -> None:
    """Show what is asked for until `q` or the end of the input."""
    while True:
        try:
            word = ask().strip()
        except EOFError:
            return
        if word == "q":
            return
        if word.isdecimal():
            try:
                show_states(run, problems, samples, int(word))
            except ProblemError as error:
                click.echo(error)
            continue
        changes = asked(word, view, bool(samples))
        if changes is None:
            click.echo(f"{word!r} means nothing here; {HELP}; verdicts: {', '.join(VERDICTS)}")
            continue
        view = replace(view, **changes)
        samples = show_page(run, problems, view)


def asked(word: str, view: View, has_samples: bool) -> dict[str, Any] | None:
    """What a word changes in the view, None if it is no such word.

    >>> asked("v incorrect", View(page=3), True), asked("/ oil", View(), True), asked("", View(page=3), True)
    ({'verdict': 'incorrect', 'page': 1}, {'text': 'oil', 'page': 1}, {'page': 4})
    """
    verdict = word[1:].strip()
    if word in ("", "n"):
        return {"page": view.page + has_samples}  # behind an empty page there is none
    if word == "p":
        return {"page": max(1, view.page - 1)}
    if word.startswith("v") and verdict in ("", *VERDICTS):
        return {"verdict": verdict or None, "page": 1}
    if word.startswith("/"):
        return {"text": verdict, "page": 1}
    return None
