"""`partway report` and `partway browse`: a page of tables and figures, and samples in the terminal."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from partway.buffer import Verdict
from partway.cli.options import AS_JSON, RUN, declared, out, patience, reads_runs, say_next
from partway.errors import ProblemError, visible

if TYPE_CHECKING:
    from partway.problem import Problem
    from partway.runs import Run
    from partway.sample import Sample
    from runreports.study import Study

logger = logging.getLogger("partway")  # whose remarks the command line shows


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@out("report/ in the run; here, if there are several")
@declared("--title", help="The title of the page.")
@AS_JSON
@reads_runs
@click.pass_context
def report(
    ctx: click.Context, runs: tuple[str, ...], out: str | None, title: str | None, as_json: bool
) -> None:
    """Write one HTML page of tables and figures, and the same as SVG, PNG and CSV files.

    Runs that differ only in seed and problems are one setting: the page shows their mean, with an interval.
    It compares evaluations/test.json where every run has one (`partway evaluate RUN --problems test.jsonl`
    writes it), else the evaluation on dev at the chosen step. A run may still be training.

    \b
    Examples:
      partway report runs/gsm8k
      partway report runs/mle-seed* runs/pcs-seed* --out report --title "GSM8K"
      partway report runs/gsm8k --json
    """
    from runreports.writing import read_study, write_study

    names = ", ".join(runs)
    with patience(f"reading {names}"):
        study = read_study([Path(run) for run in runs])
    # The report of one run lies in it; one of several belongs to none of them.
    folder = Path(out) if out else Path(runs[0], "report") if len(study.runs) == 1 else Path("report")
    logger.info("drawing the figures of %s (some seconds)", names)
    page = write_study(study, folder, title=title)
    if as_json:
        click.echo(json.dumps(as_object(study, page), ensure_ascii=False))
        return
    if not ctx.obj["quiet"]:
        for note in study.notes:
            click.echo(f"partway: {note}", err=True)
    click.echo(str(page))
    say_next(f"partway explore {runs[-1]}")


def as_object(study: Study, page: Path) -> dict[str, Any]:
    """Where the report is, and its main numbers."""
    return {
        "report": str(page),
        "figures": [str(path) for path in sorted((page.parent / "figures").glob("*"))],
        "tables": [str(path) for path in sorted((page.parent / "tables").iterdir())],
        "split": study.split,
        "settings": [
            {
                "label": setting.label,
                "runs": [str(run.directory) for run in setting.runs],
                "seeds": setting.seeds,
                "metrics": {name: asdict(value) for name, value in study.estimates[setting.label].items()},
            }
            for setting in study.settings
        ],
        "notes": study.notes,
    }


@click.command()
@RUN
@declared(
    "--verdict",
    type=click.Choice([*map(str, Verdict)]),
    metavar="VERDICT",
    help="Only samples with this verdict, such as new_partially_correct.",
)
@declared("--problem", default="", metavar="TEXT", help="Only problems whose id or question has this text.")
@declared("--page", type=click.IntRange(1), default=1, show_default=True, help="Which page.")
@declared("--rows", type=click.IntRange(1), default=10, show_default=True, help="Samples per page.")
@declared("--states", type=click.IntRange(1), metavar="N", help="Show the states of sample N of the page.")
@reads_runs
def browse(run: str, verdict: str | None, problem: str, page: int, rows: int, states: int | None) -> None:
    """Read what a run sampled: problem, solution, verdict, and the states beside the reference's.

    \b
    Examples:
      partway browse runs/demo
      partway browse runs/demo --verdict new_partially_correct --states 1
      partway browse runs/demo --problem bicycle --page 2 | less
    """
    from partway.runs import Run

    found = Run.at(run)
    problems = {one.id: one for one in found.problems()}
    chosen = selected(found, problems, verdict, problem)
    with patience(f"reading the samples of {run}"):
        samples = list(islice(chosen, (page - 1) * rows, page * rows))
    if not samples:
        click.echo("no samples here" + (" with this verdict or text" if verdict or problem else ""))
        return
    show_samples(samples)
    more = [] if next(chosen, None) is None else [f"--page {page + 1}"]
    click.echo(f"page {page}{', more follow' if more else ', the last'}")
    if states is not None:
        show_states(found, problems, samples, states)
    say_next(*(f"partway browse {run} {words}" for words in ([] if states else ["--states 1"]) + more))


def selected(run: Run, problems: dict[str, Problem], verdict: str | None, text: str) -> Iterator[Sample]:
    """The samples with this verdict of problems with this text, in the order drawn."""
    for sample in run.samples():
        problem = problems.get(sample.problem)
        about = f"{sample.problem}\n{problem.question if problem else ''}".casefold()
        if verdict in (None, str(sample.verdict)) and text.casefold() in about:
            yield sample


def show_samples(samples: Sequence[Sample]) -> None:
    """Print a page."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", "step", "verdict", "problem", "solution"):
        table.add_column(heading, overflow="fold", justify="right" if heading in ("", "step") else "left")
    for number, sample in enumerate(samples, 1):
        verdict = str(sample.verdict).replace("_", " ") + (f" x{sample.count}" if sample.count > 1 else "")
        written = visible(sample.written.strip("\n"))
        cells = (str(number), str(sample.step), verdict, visible(sample.problem), written)
        table.add_row(*map(escape, cells))
    Console().print(table)


def show_states(run: Run, problems: dict[str, Problem], samples: Sequence[Sample], number: int) -> None:
    """Print question, answer and the states of a sample, beside those of the reference if there is one."""
    from partway.cli.trace_tables import Shown, show, show_against
    from partway.language.python import NO_PROBLEM, trace
    from runreports.buffer_html import unshown_tests

    if not 1 <= number <= len(samples):
        raise ProblemError(f"there is no sample {number} on this page; it has {len(samples)}")
    sample, language = samples[number - 1], run.language
    problem, text = problems.get(sample.problem), sample.text.strip("\n")
    shown = Shown.of("sample", text, trace(text, language, problem or NO_PROBLEM), language)
    if problem is not None:
        tests = unshown_tests(problem, language)
        right = f"answer: {problem.answer!r}" if tests is None else visible("\n".join(tests))
        click.echo(f"{visible(problem.question)}\n{right}\n")
    if problem is None or problem.reference is None:
        show([shown], language)
    else:
        show_against(Shown("reference", trace(problem.reference, language, problem)), [shown], language)
