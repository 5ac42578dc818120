"""The report's page: one HTML file, without network or script, for light and dark screens and for paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

import partway
from runreports import numbers
from runreports.example import Example, example_of
from runreports.number_tables import Column, Table, to_html
from runreports.sections import SECTIONS, Section
from runreports.story import headline, terms
from runreports.study import NO_SETTING, Study
from runreports.theme import DARK, LIGHT, css_variables, inline
from runreports.trace_html import STYLE_SHEET

# Questions and solutions are text of others: even if an escape were forgotten, nothing would run or load.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
MOST_OPEN_ROWS = 12  # of a table; longer ones are opened by the reader


def page(
    study: Study,
    drawings: Mapping[str, str],
    title: str,
    sections: Sequence[Section] = SECTIONS,
    *,
    has_explorer: bool = False,
) -> str:
    """The page for a study; `drawings` has the SVG text of every figure that could be drawn."""
    sections = [s for s in sections if not s.is_optional or s.name in drawings]
    example = example_section(example_of(study), study)
    first = '<li><a href="#example">One problem</a></li>' if example else ""
    links = "".join(f'<li><a href="#{section.name}">{escape(section.title)}</a></li>' for section in sections)
    body = "\n".join(section_html(section, study, drawings.get(section.name)) for section in sections)
    content = f"""<header>
<h1>{escape(title)}</h1>
{_summary(study, has_explorer)}
<nav aria-label="Sections"><ol>{first}{links}<li><a href="#runs">Runs and settings</a></li></ol></nav>
<p class="hint">Figures and tables that are wider than the window can be moved sideways.</p>
{_notes(study)}
</header>
<main>
{example}
{body}
{_runs(study)}
</main>
<footer>Made by partway {escape(partway.__version__)} from the run directories alone. The figures are in
<code>figures/</code>, the numbers in <code>tables/</code> beside this page.</footer>"""
    return document(title, content)


def document(title: str, content: str) -> str:
    """A page that asks for nothing from elsewhere, in our colours."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{style()}</style>
</head>
<body>
{content}
</body>
</html>
"""


def style() -> str:
    """The colours of both themes, paper always light, then the rules."""
    light, dark = css_variables(LIGHT), css_variables(DARK)
    states = STYLE_SHEET.read_text(encoding="utf-8")
    rules = files("runreports").joinpath("page.css").read_text(encoding="utf-8")
    return (
        f":root {{ {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        f"@media print {{ html {{ color-scheme: light; }} }}\n{rules}{states}"
    )


def _summary(study: Study, has_explorer: bool) -> str:
    """What came out, in words, and where to look closer."""
    told = "".join(f"<p>{escape(sentence)}</p>" for sentence in headline(study))
    meanings = "".join(f"<dt>{escape(t)}</dt><dd>{escape(m)}</dd>" for t, m in terms(study))
    link = '<p><a href="explorer/index.html">Look at every problem, its solutions and their states</a></p>'
    return (
        f'<div class="headline">{told}</div><dl class="terms">{meanings}</dl>{link if has_explorer else ""}'
    )


def example_section(example: Example | None, study: Study) -> str:
    """One problem as in the paper's Figure 1."""
    if example is None:
        return ""
    name = study.names[example.run.directory]
    first = "the first solution" if example.buffer.problem.reference is None else "the reference, y*"
    shown = example.to_html()
    rows = ", = a row that it has, too" * ('class="values rows"' in shown)
    return f"""<section id="example">
<h2>One problem</h2>
<p class="paper">In the paper: Figure 1. From {escape(name)}: the same letter is the same state,
◆ the first step that differs from {first}{rows}.</p>
{shown}
</section>"""


def _notes(study: Study) -> str:
    if not study.notes:
        return ""
    items = "".join(f"<li>{escape(note)}</li>" for note in study.notes)
    return f'<div class="notes"><p>What is missing or to keep in mind:</p><ul>{items}</ul></div>'


def section_html(section: Section, study: Study, drawing: str | None) -> str:
    """A section of the page: its figure, its table and the words around them."""
    paper = "" if not section.paper else f'<p class="paper">In the paper: {escape(section.paper)}.</p>'
    parts = [f'<section id="{section.name}">', f"<h2>{escape(section.title)}</h2>", paper]
    table = section.table(study)
    if drawing is None and table is None:
        parts.append(f'<p class="none">{escape(section.absent)}</p>')
    if drawing is not None:
        label = escape(f"{section.title}: the numbers are in the table below and in tables/", quote=True)
        parts.append(
            f'<figure><div class="wide" role="img" aria-label="{label}" tabindex="0">'
            f"{inline(drawing, section.name)}</div>"
            f"<figcaption>{escape(section.caption)}</figcaption></figure>"
        )
    if table is not None:
        parts.append(_folded(table))
    return "\n".join([*parts, "</section>"])


def _folded(table: Table) -> str:
    """The table; a long one opens on demand."""
    if len(table.rows) <= MOST_OPEN_ROWS:
        return to_html(table)
    return f"<details><summary>{escape(table.caption)}</summary>{to_html(table)}</details>"


def _runs(study: Study) -> str:
    tables = [numbers.runs_table(study), numbers.settings_table(study)]
    shown = "\n".join(to_html(table) for table in tables if table is not None)
    return f'<section id="runs">\n<h2>Runs and settings</h2>\n{shown}\n{_common(study)}\n</section>'


def _common(study: Study) -> str:
    """The settings that all runs share."""
    configs = [setting.runs[0].config for setting in study.settings]
    keys = [key for key in configs[0] if key not in NO_SETTING]
    shared = [
        [key, str(configs[0][key])] for key in keys if all(c.get(key) == configs[0][key] for c in configs)
    ]
    return _folded(Table("Settings that all runs share", [Column("key"), Column("value")], shared))
