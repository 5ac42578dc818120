"""A comparison as files: JSON, Markdown for documentation, and a page without network or script."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

from partway.comparing.experiment import Experiment
from partway.comparing.outcomes import Outcome, to_json
from partway.comparing.tables import all_tables, headline, to_markdown
from partway.evaluation.number_tables import Table, to_html
from partway.files import atomic_writer
from partway.reports.page import document


def write_comparison(
    experiment: Experiment, outcomes: Sequence[Outcome], directory: Path, report: Path, command: str
) -> Path:
    """Write comparison.json, .md and .html into `directory`; returns the page, which links the report."""
    tables = all_tables(experiment, outcomes)
    link = report.relative_to(directory).as_posix()
    contents = {
        ".json": json.dumps({"command": command, **to_json(experiment, outcomes)}, indent=2),
        ".md": _markdown(experiment, tables, command),
        ".html": _html(experiment, tables, headline(experiment, outcomes), command, link),
    }
    for suffix, content in contents.items():
        with atomic_writer(directory / f"comparison{suffix}") as stream:
            stream.write(content)
    return directory / "comparison.html"


def _sources(experiment: Experiment) -> list[tuple[str, str]]:
    return [(arm.label, arm.source) for arm in experiment.arms]


def _markdown(experiment: Experiment, tables: Sequence[Table], command: str) -> str:
    rules = "".join(f"- {rule}\n" for rule in experiment.rules())
    sources = "".join(f"- {label}: {source}\n" for label, source in _sources(experiment))
    shown = "\n".join(map(to_markdown, tables))
    return f"`{command}`\n\n{rules}\n{shown}\n{sources}"


def _html(
    experiment: Experiment, tables: Sequence[Table], told: Sequence[str], command: str, report: str
) -> str:
    words = "".join(f"<p>{escape(sentence)}</p>" for sentence in told)
    rules = "".join(f"<li>{escape(rule)}</li>" for rule in experiment.rules())
    sources = "".join(
        f"<dt>{escape(label)}</dt><dd>{escape(source)}</dd>" for label, source in _sources(experiment)
    )
    title = f"{len(experiment.arms)} arms compared"
    content = f"""<header><h1>{title}</h1>
<div class="headline">{words}</div><dl class="terms">{sources}</dl>
<p><code>{escape(command)}</code></p><ul>{rules}</ul>
<p><a href="{escape(report, quote=True)}">Figures and curves of the runs</a></p></header>
<main>
{"".join(map(to_html, tables))}
</main>"""
    return document(title, content)
