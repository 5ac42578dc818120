"""Writes a report of runs: a page, figures as SVG and PNG in light and dark, numbers as CSV."""

from __future__ import annotations

import io
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from partway import registry
from partway.errors import RunError
from partway.files import atomic_path, atomic_writer
from partway.runs import Run
from runreports import numbers
from runreports.number_tables import Table, to_csv
from runreports.page import page
from runreports.sections import SECTIONS, Section
from runreports.study import Study, study_of
from runreports.summaries import summarize
from runreports.theme import DARK, LIGHT, can_draw, darkened, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

logger = logging.getLogger("partway")  # whose remarks the command line shows


def write_report(
    runs: Sequence[Run | Path | str],
    out: Path | str,
    *,
    title: str | None = None,
    labels: Mapping[Path, str] | None = None,
    sections: Sequence[Section] = SECTIONS,
) -> Path:
    """Write the report of `runs` into the directory `out`; returns the path of its page.

    Runs are named by what tells them apart, or by the `labels` of their directories.
    """
    return write_study(read_study(runs, labels), Path(out), title=title, sections=sections)


def read_study(runs: Sequence[Run | Path | str], labels: Mapping[Path, str] | None = None) -> Study:
    """What the runs say, grouped into settings; a directory given twice counts once."""
    directories = [run.directory if isinstance(run, Run) else Path(run) for run in runs]
    if not directories:
        raise RunError("no runs to report on; expected at least one run directory")
    distinct = {path.resolve(): path for path in directories}
    return study_of(map(summarize, distinct.values()), labels)


def write_study(
    study: Study, out: Path, *, title: str | None = None, sections: Sequence[Section] = SECTIONS
) -> Path:
    """Write the report of a study: figures and tables first, the page last; without matplotlib no figures."""
    if not can_draw():
        logger.warning("no figures are drawn: they need matplotlib; try pip install 'partway[plots]'")
    drawings = {}
    for section in sections if can_draw() else ():
        svg = _write_figures(section, study, out / "figures")
        if svg is not None:
            drawings[section.name] = svg
    for name, table in _tables(study, sections).items():
        _write_table(out / "tables" / f"{name}.csv", table)
    has_explorer = write_explorer(study, out / "explorer")
    path = out / "report.html"
    with atomic_writer(path) as stream:
        text = page(study, drawings, title or _title(study), sections, has_explorer=has_explorer)
        stream.write(text)
    return path


def write_explorer(study: Study, folder: Path) -> bool:
    """Let the explorer, if it is there, write every problem of the run that is told of to `folder`."""
    explorer = registry.parts("views").get("problems")
    if explorer is None:
        return False
    chosen = (study.sampling or study.settings)[-1].runs[0]
    base = study.baseline
    # The same seed draws the same problems, so the baseline is shown beside it.
    same = [run for run in (base.runs if base else ()) if run.seed == chosen.seed and run is not chosen]
    baseline = Run(same[0].directory) if same else None
    is_written: bool = explorer.load()(Run(chosen.directory), baseline, folder)
    return is_written


def _title(study: Study) -> str:
    names = list(study.names.values())
    return f"Report on {names[0]}" if len(names) == 1 else f"Report on {len(names)} runs"


def _write_figures(section: Section, study: Study, folder: Path) -> str | None:
    """Draw a section's figure in both themes; returns the light SVG, None where there is nothing to draw."""
    svg = None
    for theme, suffix in ((LIGHT, ""), (DARK, "-dark")):
        png = folder / f"{section.name}{suffix}.png"
        with drawing(theme, section.name):
            figure = section.draw(study, theme)
            if figure is None:
                for path in (png, png.with_suffix(".svg")):  # of an earlier report in the same place
                    path.unlink(missing_ok=True)
                continue
            with atomic_path(png) as path:
                _save_png(figure, path)
            if theme is LIGHT:
                svg = _svg(figure)
        if svg is not None:
            with atomic_writer(png.with_suffix(".svg")) as stream:
                # The dark SVG differs in colours only, so it is not drawn again; pixels have to be.
                stream.write(svg if theme is LIGHT else darkened(svg))
    return svg


def _save_png(figure: Figure, path: Path) -> None:
    figure.savefig(path, format="png", metadata={"Software": None})


def _svg(figure: Figure) -> str:
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return stream.getvalue()


def _tables(study: Study, sections: Sequence[Section]) -> dict[str, Table | None]:
    """Every table by the name of its file."""
    tables = {"runs": numbers.runs_table(study), "settings": numbers.settings_table(study)}
    for section in sections:
        tables[section.name] = section.table(study)
        tables[f"{section.name}_series"] = section.series(study)
    return tables


def _write_table(path: Path, table: Table | None) -> None:
    if table is None:
        path.unlink(missing_ok=True)
        return
    with atomic_writer(path) as stream:
        stream.write(to_csv(table))
