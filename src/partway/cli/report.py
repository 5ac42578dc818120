"""`partway report`: one page of tables and figures for one or several runs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from partway.reports.study import Study


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--out", metavar="DIR", help="Where it goes.  [default: report/ in the one run, or here]")
@click.option("--title", help="The page's title.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(
    ctx: click.Context, runs: tuple[str, ...], out: str | None, title: str | None, as_json: bool
) -> None:
    """One self-contained HTML page of tables and figures, and the same as SVG, PNG and CSV.

    Runs that differ only in seed and problems are one setting: their mean is shown, with intervals. Compared
    is evaluations/test.json where every run has one (`partway evaluate RUN --problems test.jsonl` writes it),
    else the evaluation on dev at the chosen step. A run that is still training shows what it has so far.

    \b
    Examples:
      partway report runs/gsm8k
      partway report runs/mle-seed* runs/pcs-seed* --out report --title "GSM8K, 125M"
      partway report runs/gsm8k --json
    """
    from partway.reports.report import read_study, write_study

    study = read_study([Path(run) for run in runs])
    # The report of one run lies in it; one of several belongs to none of them.
    folder = Path(out) if out else Path(runs[0], "report") if len(study.runs) == 1 else Path("report")
    page = write_study(study, folder, title=title)
    if as_json:
        click.echo(json.dumps(as_object(study, page), ensure_ascii=False))
        return
    if not ctx.obj["quiet"]:
        for note in study.notes:
            click.echo(f"partway: {note}", err=True)
    click.echo(str(page))


def as_object(study: Study, page: Path) -> dict[str, Any]:
    """Where the report is, and its main numbers."""
    return {
        "report": str(page),
        "figures": [str(path) for path in sorted((page.parent / "figures").iterdir())],
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
