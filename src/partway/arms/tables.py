"""A comparison as tables and in words, written as JSON, as Markdown and as a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from statistics import fmean

from partway.arms.experiment import Experiment
from partway.arms.outcomes import Outcome, buffer_sizes, gains, mean_spent, means, of_arm, to_json
from partway.arms.selecting import BEST_PER_K, LAST, SELECTED
from partway.cli.options import counted
from partway.evaluation import Estimate
from partway.files import atomic_writer
from partway.measuring.chance import best_above
from runreports.example import example_of
from runreports.number_tables import Cell, Column, Table, to_html
from runreports.page import document, example_section, section_html
from runreports.sections import SECTIONS
from runreports.story import judgement
from runreports.study import Study

MOST_TOLD = 4  # arms whose gains are told in words
TITLES = {
    SELECTED: "Selected by dev {selects}",
    LAST: "Nothing chosen: the last step",
    BEST_PER_K: "For each k the best on dev",
}


def scores_table(experiment: Experiment, outcomes: Sequence[Outcome], table: str) -> Table:
    """pass@k of every arm, what it has over the first one, and the share of unique solutions."""
    first = experiment.arms[0]
    baseline = of_arm(outcomes, first.name)
    compared = [experiment.metrics[0], experiment.metrics[-1]]  # accuracy and coverage
    has_unique = "unique" in means(baseline, table)  # not where each column is another model's
    columns = [Column("arm"), *(Column(name, is_share=True) for name in experiment.metrics)]
    columns += [Column(f"{name} - {first.label}", is_share=True) for name in compared]
    columns += [Column("unique", is_share=True)] if has_unique else []
    added = [path.rpartition(":")[2] for path in experiment.own_metrics or ()]
    columns += [Column(name, digits=3) for name in added]
    rows: list[list[Cell]] = []
    for arm in experiment.arms:
        own = of_arm(outcomes, arm.name)
        mean, gain = means(own, table), gains(own, baseline, table)
        differences = [None if arm == first else gain[name] for name in compared]
        unique = [mean.get(name) for name in [*(["unique"] if has_unique else []), *added]]
        rows.append([arm.label, *(mean[name] for name in experiment.metrics), *differences, *unique])
    caption = f"{TITLES[table].format(selects=experiment.selects)}; {size_of(experiment)}"
    return Table(caption, columns, rows, best_above_chance(experiment, rows))


def best_above_chance(experiment: Experiment, rows: Sequence[Sequence[Cell]]) -> dict[tuple[int, int], str]:
    """Which cells are bold: of each pass@k the best arm but the ceiling, if its interval is above chance."""
    floor = [row for row, arm in zip(rows, experiment.arms, strict=True) if arm.method == "chance"]
    marks: dict[tuple[int, int], str] = {}
    for column in range(1, 1 + len(experiment.metrics)) if floor else ():
        cells = {
            number: cell
            for number, (row, arm) in enumerate(zip(rows, experiment.arms, strict=True))
            if isinstance(cell := row[column], Estimate) and not arm.sees_all
        }
        chance = floor[0][column]
        assert isinstance(chance, Estimate), "every arm has every pass@k"
        if (number := best_above(cells, chance)) is not None:
            marks[number, column] = "best"
    return marks


def true_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table | None:
    """pass@k without luck, where every test problem has a reference."""
    names = [f"true_{metric}" for metric in experiment.metrics]
    found = {arm.label: means(of_arm(outcomes, arm.name)) for arm in experiment.arms}
    if not all(name in mean for mean in found.values() for name in names):
        return None
    columns = [Column("arm"), *(Column(name.replace("_", " "), is_share=True) for name in names)]
    rows: list[list[Cell]] = [[label, *(mean[name] for name in names)] for label, mean in found.items()]
    caption = "True pass@k: the same, answers that are right by luck (wrong with other numbers) not counted"
    return Table(caption, columns, rows, best_above_chance(experiment, rows))


def seeds_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """Every seed by itself, with intervals over problems."""
    cells = [(name, seed) for name in told_metrics(experiment) for seed in experiment.seeds]
    columns = [Column("arm"), *(Column(f"{name}, seed {seed}", is_share=True) for name, seed in cells)]
    rows: list[list[Cell]] = []
    for arm in experiment.arms:
        by_seed = {one.seed: means([one]) for one in of_arm(outcomes, arm.name)}
        rows.append([arm.label, *(by_seed[seed][name] for name, seed in cells)])
    return Table("Every seed by itself, 95% intervals over its problems", columns, rows)


def size_of(experiment: Experiment) -> str:
    """On how many problems and samples the numbers stand."""
    drawn = counted(experiment.test_samples, "sample")
    return (
        f"{counted(experiment.test, 'test problem')}, {drawn} at T=0.8 "
        f"(pass@1: one at T=0.2), {counted(len(experiment.seeds), 'seed')}, 95% intervals"
    )


def spent_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """What every arm spent in training, and what its buffers held at the end."""
    columns = [Column(name) for name in ("arm", "steps", "samples", "tokens sampled", "tokens learned")]
    columns += [Column("core minutes", digits=1), Column("FCS", digits=2), Column("PCS", digits=2)]
    columns += [Column("selected, by seed"), *([Column("rate")] if experiment.learning_rates else [])]
    rows: list[list[Cell]] = []
    for arm in experiment.arms:
        own = of_arm(outcomes, arm.name)
        spent = mean_spent(own)
        chosen = ", ".join(outcome.tables[SELECTED].chosen for outcome in own)
        counts = [spent.steps, spent.samples, spent.tokens_sampled, spent.tokens_learned]
        rates = dict.fromkeys(f"{one.run.config['learning_rate']:g}" for one in own if one.run)
        told = [", ".join(rates)] if experiment.learning_rates else []
        rows.append([arm.label, *counts, spent.seconds / 60, *buffer_sizes(own), chosen, *told])
    budget = f"{counted(experiment.steps, 'step')}, {counted(experiment.samples, 'sample')}"
    return Table(f"What an arm spends, mean over seeds; the budget of each is {budget}", columns, rows)


def headline(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[str]:
    """What came out, in words: what arms have over the first one, most first, without ceiling and floors."""
    first, names, told = experiment.arms[0], told_metrics(experiment), {}
    beside = [arm for arm in experiment.arms if arm.sees_all or arm.method in ("untrained", "chance")]
    for arm in [one for one in experiment.arms[1:] if one not in beside]:
        own = of_arm(outcomes, arm.name)
        gain = gains(own, of_arm(outcomes, first.name))
        sentences = [_told(name, means(own)[name], gain[name], first.label) for name in names]
        told[f"{arm.label}: {' '.join(sentences)}"] = gain[names[-1]].value
    return [*_found(experiment, outcomes), *sorted(told, key=lambda one: -told[one])[:MOST_TOLD]]


def _told(metric: str, own: Estimate, gain: Estimate, baseline: str) -> str:
    points = f"{abs(100 * gain.value):.1f} points {'higher' if gain.value >= 0 else 'lower'}"
    interval = f"95% interval {100 * gain.low:+.1f} to {100 * gain.high:+.1f}"
    return f"{metric} is {own.value:.1%}, {points} than with {baseline} ({interval}). {judgement(gain)}"


def told_metrics(experiment: Experiment) -> list[str]:
    """At the first try, and at the largest k where models are mostly above chance."""
    return list(dict.fromkeys(["pass@1", f"pass@{max((k for k in experiment.ks if k <= 10), default=1)}"]))


def _found(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[str]:
    """Where few problems have a reference: of how many others each arm that samples found a solution."""
    if experiment.references is None:
        return []
    rest, seeds = experiment.train - experiment.references, len(experiment.seeds)
    runs = f" (mean of {seeds} runs)" if seeds > 1 else ""
    given = counted(experiment.references, "training problem")
    told = [f"{given} with a written solution, {rest:,} with an answer only."]
    for arm in experiment.arms:
        own = [one.run for one in of_arm(outcomes, arm.name) if one.run is not None]
        if arm.trains and not arm.sees_all and mean_spent(of_arm(outcomes, arm.name)).samples:
            solved = [
                sum(bool(b.fully_correct) and b.problem.reference is None for b in run.buffers().values())
                for run in own
            ]
            told.append(f"{arm.label} found solutions of {fmean(solved):,.0f} of those{runs}.")
    return told


def all_tables(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[Table]:
    """Everything there is to show, in the order of reading."""
    scored = [scores_table(experiment, outcomes, table) for table in outcomes[0].tables]
    seeds = [seeds_table(experiment, outcomes)] if len(experiment.seeds) > 1 else []
    true = true_table(experiment, outcomes)
    return [*scored, *([] if true is None else [true]), *seeds, spent_table(experiment, outcomes)]


def to_markdown(table: Table) -> str:
    """The table for a page of documentation."""
    lines = [
        [column.title for column in table.columns],
        ["---" for _ in table.columns],
        *(
            [
                f"**{shown(cell, column)}**" if (number, place) in table.marks else shown(cell, column)
                for place, (cell, column) in enumerate(zip(row, table.columns, strict=True))
            ]
            for number, row in enumerate(table.rows)
        ),
    ]
    return f"{table.caption}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def shown(cell: Cell, column: Column) -> str:
    """A cell as text; a difference has its sign."""
    if cell is None or isinstance(cell, str):
        return cell or ""
    if not isinstance(cell, Estimate):
        return column.shown(cell)
    value, low, high = map(column.shown, (cell.value, cell.low, cell.high))
    return f"{value} ({low} to {high})"


def write_comparison(
    experiment: Experiment, outcomes: Sequence[Outcome], directory: Path, study: Study, command: str
) -> Path:
    """Write comparison.json, .md and .html into `directory`; returns the page, which links the report."""
    tables = all_tables(experiment, outcomes)
    contents = {
        ".json": json.dumps({"command": command, **to_json(experiment, outcomes)}, indent=2),
        ".md": _markdown(experiment, tables, command),
        ".html": _html(experiment, tables, headline(experiment, outcomes), command, _shown(study, directory)),
    }
    for suffix, content in contents.items():
        with atomic_writer(directory / f"comparison{suffix}") as stream:
            stream.write(content)
    return directory / "comparison.html"


def _markdown(experiment: Experiment, tables: Sequence[Table], command: str) -> str:
    rules = "".join(f"- {rule}\n" for rule in experiment.rules())
    sources = "".join(f"- {arm.label}: {arm.source}\n" for arm in experiment.arms)
    shown = "\n".join(map(to_markdown, tables))
    return f"`{command}`\n\n{rules}\n{shown}\n{sources}"


def _shown(study: Study, directory: Path) -> str:
    """What the arms found, from the report: a curve, and one problem."""
    [growth] = [section for section in SECTIONS if section.name == "buffer_growth"]
    drawn = directory / "report" / "figures" / f"{growth.name}.svg"
    figure = section_html(growth, study, drawn.read_text("utf-8")) if drawn.exists() else ""
    return example_section(example_of(study), study) + figure


def _html(
    experiment: Experiment, tables: Sequence[Table], told: Sequence[str], command: str, shown: str
) -> str:
    words = "".join(f"<p>{escape(sentence)}</p>" for sentence in told)
    rules = "".join(f"<li>{escape(rule)}</li>" for rule in experiment.rules())
    sources = "".join(f"<dt>{escape(arm.label)}</dt><dd>{escape(arm.source)}</dd>" for arm in experiment.arms)
    title = f"{counted(len(experiment.arms), 'arm')} compared"
    content = f"""<header><h1>{title}</h1>
<div class="headline">{words}</div><dl class="terms">{sources}</dl>
<p><a href="report/report.html">Figures and curves of the runs</a></p></header>
<main>
{to_html(tables[0])}
{shown}
{"".join(map(to_html, tables[1:]))}
<p><code>{escape(command)}</code></p><ul>{rules}</ul>
</main>"""
    return document(title, content)
