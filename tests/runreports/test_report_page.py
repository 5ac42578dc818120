"""The report: a page that stands alone, figures that can be read, tables that agree with the runs."""

import csv
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations
from xml.etree import ElementTree

import pytest
from report_cases import apples, save_buffers, write_run

from partway.buffer import seed_buffers
from partway.evaluation import Estimate
from partway.runs import Run, json_line
from runreports import write_report
from runreports.figures import buffer_growth, training_progress
from runreports.number_tables import Column, Table, to_csv, to_html
from runreports.page import page
from runreports.sections import SECTIONS
from runreports.theme import DARK, LIGHT, drawing
from runreports.writing import read_study

pytest.importorskip("matplotlib")

HOSTILE = '<img src=x onerror=alert(1)> & "$x$" 数'
ARMS = [
    ("none", "mle"),
    *(
        (strategy, objective)
        for strategy in ("fcs", "fcs+pcs")
        for objective in ("mml", "mle_aug", "beta_mml")
    ),
]
VOID = {"meta", "br", "img", "link"}


class Page(HTMLParser):
    """Every tag with its attributes; checks that tags close as they open."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def runs(folder):
    """Two seeds of two settings, with names and settings that try to break out."""
    made = [
        write_run(folder / f"{HOSTILE.replace('/', '')}-{seed}", seed=seed, tested=True) for seed in (0, 1)
    ]
    settings = {"self_sampling": "none", "objective": "mle", "model_name_or_path": f"</td><script>{HOSTILE}"}
    return [
        *made,
        *(write_run(folder / f"mle-{seed}", seed=seed, tested=True, **settings) for seed in (0, 1)),
    ]


@pytest.fixture(scope="module")
def report(folder, runs):
    return write_report(runs, folder / "out", title=f"A title with {HOSTILE}")


@pytest.mark.slow
def test_the_page_stands_alone(report):
    tags = Page(report.read_text(encoding="utf-8")).tags
    assert not {tag for tag, _ in tags} & {"script", "link", "img", "iframe", "object", "base", "form"}
    for tag, attributes in tags:
        for name in ("href", "xlink:href", "src", "action"):
            assert attributes.get(name, "#").startswith(("#", "explorer/")), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")]
    policies = [a["content"] for tag, a in tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]
    assert not re.search(r"@import|url\((?!#)", report.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_what_runs_and_users_write_is_shown_as_text(report):
    text = "".join(Page(report.read_text(encoding="utf-8")).text)
    assert f"A title with {HOSTILE}" in text
    assert f"{HOSTILE}-0" in text
    assert f"</td><script>{HOSTILE}" in text


@pytest.mark.slow
def test_ids_are_unique_and_every_link_leads_to_one(report):
    tags = Page(report.read_text(encoding="utf-8")).tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {
        attributes[name][1:]
        for _, attributes in tags
        for name in ("href", "xlink:href")
        if name in attributes and attributes[name] != "explorer/index.html"
    }
    assert (report.parent / "explorer" / "index.html").is_file()
    links |= set(re.findall(r"url\(#([^)]+)\)", report.read_text(encoding="utf-8")))
    assert links <= set(ids)


@pytest.mark.slow
def test_colours_of_inline_figures_follow_the_theme(report):
    text = report.read_text(encoding="utf-8")
    body = text[text.index("<body>") :]
    assert not [colour for theme in (LIGHT, DARK) for colour in theme.values() if colour in body]
    figures = "".join(re.findall(r"<svg.*?</svg>", body, re.DOTALL))
    assert set(re.findall(r"var\(--(\w+)\)", figures)) <= LIGHT.keys() == DARK.keys()
    for theme in (LIGHT, DARK):
        assert len(set(theme.values())) == len(theme)


@pytest.mark.slow
def test_every_figure_is_there_as_svg_and_png_in_light_and_dark(report):
    names = {section.name for section in SECTIONS} - {"objectives"}  # one objective: nothing to compare
    stems = [f"{name}{suffix}" for name in names for suffix in ("", "-dark")]
    found = sorted(path.name for path in (report.parent / "figures").iterdir())
    assert found == sorted(f"{stem}.{ending}" for stem in stems for ending in ("svg", "png"))
    for path in (report.parent / "figures").glob("*.svg"):
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
        words = " ".join(root.itertext())
        assert f"{HOSTILE}-0" in words
        assert re.search(r"steps? \d", words)
        assert re.search(r"seeds 0, 1", words)
        theme = DARK if path.stem.endswith("-dark") else LIGHT
        assert theme["ink"] in path.read_text(encoding="utf-8")
    for path in (report.parent / "figures").glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_tables_hold_the_numbers_of_the_runs(report, runs):
    with (report.parent / "tables" / "pass_at_k.csv").open(encoding="utf-8") as stream:
        rows = {row["setting"]: row for row in csv.DictReader(stream)}
    for label, own in (("FCS+PCS", runs[:2]), ("MLE", runs[2:])):
        summaries = [json.loads((run.directory / "evaluations" / "test.json").read_text()) for run in own]
        mean = sum(summary["metrics"]["pass@6"]["value"] for summary in summaries) / 2
        assert float(rows[label]["pass@6"]) == pytest.approx(mean)
        assert float(rows[label]["pass@6 low"]) <= mean <= float(rows[label]["pass@6 high"])
    with (report.parent / "tables" / "outcomes_series.csv").open(encoding="utf-8") as stream:
        drawn = sum(float(row["samples/drawn"]) for row in csv.DictReader(stream))
    assert drawn == sum(sample.count for run in runs for sample in run.samples())


@pytest.mark.slow
def test_the_same_runs_give_the_same_page(report, runs):
    svgs = {path.stem: path.read_text(encoding="utf-8") for path in (report.parent / "figures").glob("*.svg")}
    again = page(read_study(runs), svgs, f"A title with {HOSTILE}", has_explorer=True)
    assert again == report.read_text(encoding="utf-8")


def test_a_young_run_gets_a_page_that_says_what_is_missing(tmp_path):
    run = Run(tmp_path / "young")
    run.write_config({"max_steps": 50})
    text = write_report([run], tmp_path / "out").read_text(encoding="utf-8")
    for sentence in ("not finished (step 0 of 50)", "no pass@k", "No run was evaluated yet", "no times"):
        assert sentence in text
    assert not (tmp_path / "out" / "figures").exists()


def test_figures_of_an_earlier_report_do_not_outlive_it(tmp_path):
    stale = tmp_path / "out" / "figures" / "objectives-dark.svg"
    stale.parent.mkdir(parents=True)
    stale.write_text("old")
    (stale.parent / "mine.svg").write_text("kept")
    run = Run(tmp_path / "young")
    run.write_config({})
    write_report([run.directory], tmp_path / "out")
    assert [path.name for path in stale.parent.iterdir()] == ["mine.svg"]


def test_without_matplotlib_the_page_has_its_tables_and_a_line_names_the_extra(tmp_path, monkeypatch, caplog):
    run = write_run(tmp_path / "run")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = Page(write_report([run], tmp_path / "out").read_text(encoding="utf-8"))
    assert "partway[plots]" in caplog.text
    assert not (tmp_path / "out" / "figures").exists()
    assert (tmp_path / "out" / "tables" / "pass_at_k.csv").exists()
    assert {"table"} <= {tag for tag, _ in told.tags}
    assert "svg" not in {tag for tag, _ in told.tags}


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """All settings of the paper and a long name."""
    folder = tmp_path_factory.mktemp("crowded")
    made = [
        write_run(folder / f"{n}-{'a-rather-long-name-' * 3}", self_sampling=strategy, objective=objective)
        for n, (strategy, objective) in enumerate(ARMS)
    ]
    return read_study([*made, write_run(folder / "twin", max_completion_length=512)])


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_no_text_overlaps_another_or_makes_the_figure_wider(section, crowded, monkeypatch):
    with drawing(LIGHT, section.name):
        figure = section.draw(crowded, LIGHT)
        boxes = drawn_texts(figure, monkeypatch)
    assert len(boxes) > 10
    for text, box in boxes:
        assert -1 <= box.x0 <= box.x1 <= figure.bbox.width + 1, text
    for (first, one), (second, other) in combinations(boxes, 2):
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        up = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert across < 1 or up < 1, f"{first!r} and {second!r}"


def test_a_long_legend_makes_a_figure_taller_and_takes_nothing_from_its_panels(crowded):
    many = replace(
        crowded,
        settings=tuple(replace(s, label=f"{n}, {s.label}") for n in range(3) for s in crowded.settings),
    )
    with drawing(LIGHT, "salt"):
        few, figure = (training_progress(study, LIGHT) for study in (crowded, many))
        heights = [
            one.axes[0].get_window_extent().height
            for one in (few, figure)
            if not one.draw_without_rendering()
        ]
    assert heights[1] > 0.9 * heights[0]
    totals = [one.get_tightbbox().height for one in (few, figure)]
    assert totals[1] > 1.1 * totals[0]


def test_runs_may_be_given_the_names_of_their_arms(tmp_path):
    runs = [write_run(tmp_path / f"run{seed}", seed=seed, temperature=0.5 + seed) for seed in range(3)]
    labels = dict(zip([run.directory for run in runs], ["B", "A", "B"], strict=True))
    study = read_study(runs, labels)
    assert [(s.label, s.seeds) for s in study.settings] == [("B", (0, 2)), ("A", (1,))]


def test_a_curve_of_one_point_can_be_seen(tmp_path):
    study = read_study([write_run(tmp_path / "run", steps=20, finished=False)])
    assert study.origin_over(study.settings[0], "eval_pass@").endswith("run · step 20 · seed 0")
    with drawing(LIGHT, "salt"):
        figure = training_progress(study, LIGHT)
        figure.draw_without_rendering()
    for axes in figure.axes:
        (line,) = axes.lines  # few points are not smoothed
        assert list(line.get_xdata()) == [20]
        assert line.get_marker() not in ("", "None", None)
        assert axes.get_ylim()[0] == 0
        assert axes.get_ylim()[1] <= 103
        assert 20 in axes.get_xticks()
        assert all(tick == int(tick) for tick in axes.get_xticks())


def test_a_run_with_few_references_has_a_curve_of_solved_problems(tmp_path):
    run = write_run(tmp_path / "run")
    titles = []
    for solved in ({}, {"buffer/problems_with_a_solution": 7}):
        lines = [{**line, **solved} if "loss" in line else line for line in run.metrics()]
        (run.directory / "metrics.jsonl").write_text("".join(map(json_line, lines)))
        with drawing(LIGHT, "salt"):
            figure = buffer_growth(read_study([run]), LIGHT)
        titles.append([axes.get_title(loc="left") or axes.get_title() for axes in figure.axes])
    assert [len(titles[0]), *titles[1][2:]] == [2, "problems with a solution"]


def drawn_texts(figure, monkeypatch):
    """Every text that is drawn, and where, in pixels."""
    from matplotlib.text import Text

    drawn, draw = [], Text.draw
    monkeypatch.setattr(Text, "draw", lambda text, renderer: (drawn.append(text), draw(text, renderer)))
    figure.draw_without_rendering()
    return [
        (text.get_text(), text.get_window_extent())
        for text in drawn
        if text.get_visible() and text.get_text()
    ]


@pytest.mark.volume
def test_a_run_of_5000_problems_and_2500_log_lines_stays_small(tmp_path, no_pngs):
    run = write_run(tmp_path / "large", steps=20, finished=False)
    problems = apples(5000)
    run.write_problems("train", problems)
    save_buffers(tmp_path / "large" / "final", seed_buffers(problems))
    line = json.loads((run.directory / "metrics.jsonl").read_text().splitlines()[0])
    with (run.directory / "metrics.jsonl").open("a") as stream:
        for step in range(50, 25_000, 10):
            stream.write(json_line({**line, "step": step, "buffer/fcs_per_problem": 1 + step / 7919}))
            if step % 500 == 0:
                stream.write(
                    json_line({"step": step, **{f"eval_pass@{k}": step % 97 / 97 for k in (1, 5, 50)}})
                )
    path = write_report([run], tmp_path / "out")
    assert path.stat().st_size < 8_000_000 / 8  # far from the limit of 8 MB


def test_tables_are_escaped_in_html_and_complete_in_csv():
    table = Table(
        "<b>caption",
        [Column("name <i>"), Column("pass@1", is_share=True)],
        [["a<b", Estimate(0.5, 0.25, 1.0)], ["c", None]],
    )
    html = to_html(table)
    assert "<b>caption" not in html
    assert "a&lt;b" in html
    assert "<b>50.0</b> <small>25.0 to 100.0</small>" in html
    assert to_csv(table) == "name <i>,pass@1,pass@1 low,pass@1 high\na<b,0.5,0.25,1.0\nc,,,\n"
