"""The numbers of each figure: tables by setting for readers, and by run and step for plotting again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from partway.evaluation import Estimate
from partway.measuring.chance import best_above
from partway.objectives import label_of
from runreports.figures import has_objectives, logged_ks
from runreports.number_tables import Cell, Column, Table
from runreports.study import NO_SETTING, STRATEGIES, Setting, Study
from runreports.summaries import RunSummary
from runreports.theme import verdicts_of

SETTING = Column("setting")
ABOUT = (SETTING, Column("runs"), Column("step"), Column("problems"), Column("samples"))
RUN = (SETTING, Column("run"), Column("seed"))


def results_table(study: Study) -> Table | None:
    """pass@k of every setting, at the smallest and the largest k what it has over the baseline, and chance.

    Bold is the best of its column, where it is above chance.
    """
    names = {f"pass@{k}": f"pass@{k}" for k in study.ks}
    if any(f"true_pass@{study.ks[-1]}" in study.estimates[s.label] for s in study.evaluated):
        names |= {f"true_pass@{k}": f"true pass@{k}" for k in study.ks}
    table = _results(study, "pass@k", names)
    base = study.baseline
    if table is None:
        return None
    if base is None:
        return _above_chance(study, table, names)
    compared = [f"pass@{k}" for k in sorted({*study.ks[:1], *study.ks[-1:]})]
    columns = [Column(f"{metric} - {base.label}", is_share=True) for metric in compared]
    rows = [
        [*row, *(study.gains.get(setting.label, {}).get(metric) for metric in compared)]
        for row, setting in zip(table.rows, study.evaluated, strict=True)
    ]
    return _above_chance(study, Table(table.caption, [*table.columns, *columns], rows), names)


def _above_chance(study: Study, table: Table, metrics: Iterable[str]) -> Table:
    """The table with a row for chance and marks at the best that is above it, where chance is known."""
    if study.chance is None:
        return table
    chance, first = study.chance, len(ABOUT)
    cells = [chance.metrics.get(metric) for metric in metrics]
    marks = {}
    for column, floor in enumerate(cells, first):
        found = {n: cell for n, row in enumerate(table.rows) if isinstance(cell := row[column], Estimate)}
        if (best := best_above(found, floor)) is not None:
            marks[best, column] = "best"
    about: list[Cell] = ["chance, no model", None, None, chance.problems, chance.samples]
    rest = [None] * (len(table.columns) - first - len(cells))
    caption = f"{table.caption}; bold: the best, where it is above chance"
    return Table(caption, table.columns, [*table.rows, [*about, *cells, *rest]], marks)


def diversity_table(study: Study) -> Table | None:
    """What else the samples of the evaluation say."""
    names = {"unique": "distinct texts", "unique_canonical": "spelling aside", "unique_alpha": "names aside"}
    names |= {"executable": "executable"} | {f"maj@{k}": f"maj@{k}" for k in study.ks[-1:]}
    what, known = (
        "distinct samples, samples that run, majority votes that are right",
        [*names, "pass", "true_pass", "maj"],
    )
    found = dict.fromkeys(name for s in study.evaluated for name in study.estimates[s.label])
    own = [name for name in found if name not in names and name.partition("@")[0] not in known]
    what += ", metrics of your own" if own else ""
    return _results(study, what, names, own)


def _results(study: Study, what: str, metrics: Mapping[str, str], own: Sequence[str] = ()) -> Table | None:
    columns = [*ABOUT, *(Column(heading, is_share=True) for heading in metrics.values())]
    columns += [Column(name, digits=3) for name in own]
    rows = [[*_about(study, s), *_chosen(study, s, [*metrics, *own])] for s in study.evaluated]
    return Table(f"On {study.split}: {what}, with 95% intervals", columns, rows) if rows else None


def _about(study: Study, setting: Setting) -> list[Cell]:
    results = setting.results(study.split)
    steps = sorted({result.step for result in results if result.step is not None})
    return [
        setting.label,
        len(results),
        ", ".join(f"{step:,}" for step in steps),
        round(sum(result.problems for result in results) / len(results)),
        max(result.samples for result in results),
    ]


def _chosen(study: Study, setting: Setting, names: Sequence[str]) -> list[Cell]:
    estimates = study.estimates[setting.label]
    return [estimates.get(name) for name in names]


def objectives_table(study: Study) -> Table | None:
    """The paper's full comparison: strategy, objective, kept solutions, pass@k."""
    if not has_objectives(study):
        return None
    names = [f"pass@{k}" for k in study.ks]
    rows: list[list[Cell]] = []
    for setting in study.evaluated:
        full, partial = _kept(setting)
        strategy = STRATEGIES.get(setting.strategy, setting.strategy)
        objective = label_of(setting.objective)
        rows.append([strategy, objective, full, partial, *_chosen(study, setting, names)])
    columns = [Column("self-sampling"), Column("objective"), Column("FCS", digits=2), Column("PCS", digits=2)]
    columns += [Column(name, is_share=True) for name in names]
    caption = f"On {study.split}: bold is the best of its self-sampling, underlined is worse than MLE"
    chance = {} if study.chance is None else study.chance.metrics
    floor = [chance.get(name, Estimate(0.0, 0.0, 0.0)) for name in names]
    return Table(f"{caption}{', if above chance' * bool(chance)}", columns, rows, _marks(rows, floor))


def _kept(setting: Setting) -> tuple[float | None, float | None]:
    """Kept solutions per problem, where the strategy keeps any."""
    kept = setting.kept_per_problem
    if kept is None or setting.strategy == "none":
        return None, None
    return kept[0].value, kept[1].value if setting.strategy == "fcs+pcs" else None


def _marks(rows: Sequence[Sequence[Cell]], floor: Sequence[Estimate]) -> dict[tuple[int, int], str]:
    """Which pass@k is the best of its strategy and above the floor, and which is worse than MLE."""
    marks: dict[tuple[int, int], str] = {}
    for column in range(4, len(rows[0])):  # the first four say what is compared
        values = {
            number: cell for number, row in enumerate(rows) if isinstance(cell := row[column], Estimate)
        }
        mle = [found.value for number, found in values.items() if rows[number][0] == STRATEGIES["none"]]
        for number, found in values.items():
            rivals = {other: values[other] for other in values if rows[other][0] == rows[number][0]}
            best = best_above(rivals, floor[column - 4])
            is_best = len(rivals) > 1 and best is not None and found.value == rivals[best].value
            is_worse = bool(mle) and found.value < max(mle)
            if is_best or is_worse:
                marks[number, column] = " ".join(["best"] * is_best + ["worse"] * is_worse)
    return marks


def solutions_table(study: Study) -> Table | None:
    """How many solutions are kept per problem."""
    rows: list[list[Cell]] = []
    for setting in study.sampling:
        if (kept := setting.kept_per_problem) is None:
            continue
        counts = [kinds for run in setting.runs if run.kept for kinds in run.kept.kinds.values()]
        several = sum(kinds["fully_correct"] > 1 for kinds in counts) / len(counts)
        partial = sum(kinds["partially_correct"] > 0 for kinds in counts) / len(counts)
        most = max(kinds["fully_correct"] + kinds["partially_correct"] for kinds in counts)
        rows.append([setting.label, *kept, several, partial, most])
    columns = [SETTING, Column("FCS per problem", digits=2), Column("PCS per problem", digits=2)]
    columns += [
        Column("problems with several FCS", is_share=True),
        Column("problems with PCS", is_share=True),
    ]
    columns.append(Column("most of one problem"))
    return Table("Kept solutions, the reference counted as FCS", columns, rows) if rows else None


def solutions_series(study: Study) -> Table | None:
    """Every problem's kept solutions."""
    rows = [
        [
            *_run(study, setting, run),
            run.kept.step,
            problem,
            kinds["fully_correct"],
            kinds["partially_correct"],
        ]
        for setting, run in _runs(study)
        if run.kept
        for problem, kinds in run.kept.kinds.items()
    ]
    columns = [*RUN, Column("step"), Column("problem"), Column("FCS"), Column("PCS")]
    return Table("Kept solutions of each problem", columns, rows) if rows else None


def peaks_table(study: Study) -> Table | None:
    """For each k the best step and the last, which differ where a model becomes overconfident."""
    rows: list[list[Cell]] = []
    for setting in study.settings:
        for k in logged_ks(setting):
            band = setting.band(f"eval_pass@{k}")
            points = list(zip(band.means, band.steps, strict=True))
            best = max(points, key=lambda point: (point[0], -point[1]))  # of equal ones the earliest
            rows.append([setting.label, f"pass@{k}", *best, *points[-1]])
    columns = [SETTING, Column("metric"), Column("best", is_share=True), Column("at step")]
    columns += [Column("last", is_share=True), Column("at the last step")]
    return Table("The best and the last evaluation on dev, mean over runs", columns, rows) if rows else None


def outcomes_table(study: Study) -> Table | None:
    """What became of all self-samples."""
    verdicts = verdicts_of(s.shares.totals for s in study.settings)
    rows: list[list[Cell]] = [
        [s.label, s.shares.drawn, *(s.shares.totals[verdict] / s.shares.drawn for verdict in verdicts)]
        for s in study.settings
        if s.shares.drawn
    ]
    names = [name for _, name in verdicts.values()]
    columns = [SETTING, Column("self-samples"), *(Column(name, is_share=True) for name in names)]
    return Table("Self-samples of all steps and runs by verdict", columns, rows) if rows else None


def work_table(study: Study) -> Table | None:
    """Seconds, tokens and samples of each part of training."""
    rows: list[list[Cell]] = [
        [setting.label, span, part.seconds, part.tokens, part.samples]
        for setting in study.settings
        for span, part in setting.work.items()
    ]
    columns = [SETTING, Column("part"), Column("seconds", digits=1), Column("tokens"), Column("samples")]
    return Table("Per run, mean over runs; a dash where nothing is counted", columns, rows) if rows else None


def _runs(study: Study) -> Iterator[tuple[Setting, RunSummary]]:
    return ((setting, run) for setting in study.settings for run in setting.runs)


def _run(study: Study, setting: Setting, run: RunSummary) -> list[Cell]:
    return [setting.label, study.names[run.directory], run.seed]


def series(*prefixes: str) -> Callable[[Study], Table | None]:
    """A table of every logged number whose name begins so, one row for each step of each run."""

    def table(study: Study) -> Table | None:
        names = dict.fromkeys(
            name for _, run in _runs(study) for name in run.curves if name.startswith(prefixes)
        )
        rows: list[list[Cell]] = []
        for setting, run in _runs(study):
            curves = {name: run.curves.get(name, {}) for name in names}
            rows += [
                [*_run(study, setting, run), step, *(curve.get(step) for curve in curves.values())]
                for step in sorted({step for curve in curves.values() for step in curve})
            ]
        return Table("", [*RUN, Column("step"), *map(Column, names)], rows) if rows else None

    return table


def runs_table(study: Study) -> Table:
    """Every run: where it comes from, how far it is, what it ran on."""
    columns = [Column("run"), Column("setting"), Column("seed"), Column("state"), Column("step")]
    columns += [Column("training problems"), Column("dev problems"), Column("model"), Column("parameters")]
    columns += [Column("device"), Column("minutes", digits=1), Column("started (UTC)")]
    rows = [
        [study.names[run.directory], setting.label, run.seed, run.state, run.step, *_machine(run)]
        for setting, run in _runs(study)
    ]
    return Table("Runs", columns, rows)


def _machine(run: RunSummary) -> list[Cell]:
    data, model = (run.environment.get(key) or {} for key in ("data", "model"))
    problems = [(data.get(split) or {}).get("problems") for split in ("train", "dev")]
    minutes = sum(part.seconds for part in run.work.values()) / 60 if run.work else None
    # To the minute, and without the zone, which the heading has.
    started = str(run.environment.get("started") or "")[: len("2026-01-01T00:00")].replace("T", " ")
    device = run.environment.get("device")
    return [*problems, model.get("name"), model.get("parameters"), device, minutes, started or None]


def settings_table(study: Study) -> Table | None:
    """The settings in which settings differ, a column for each."""
    configs = [setting.runs[0].config for setting in study.settings]
    keys = dict.fromkeys(key for config in configs for key in config if key not in NO_SETTING)
    rows: list[list[Cell]] = [
        [key, *(str(config.get(key, "")) for config in configs)]
        for key in keys
        if any(config.get(key) != configs[0].get(key) for config in configs)
    ]
    columns = [Column("key"), *(Column(setting.label) for setting in study.settings)]
    return Table("Settings that differ", columns, rows) if rows else None
