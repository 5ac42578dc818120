"""The figures of the paper for any runs. Each function draws one, or returns None if it lacks the numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from partway.evaluation import Estimate
from partway.objectives import label_of
from runreports.averages import FEW_POINTS, Band
from runreports.canvas import SMALL, Canvas, open_canvas
from runreports.study import STRATEGIES, Setting, Study
from runreports.summaries import Result, passes_in
from runreports.theme import SPAN_COLOURS, Theme, verdicts_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Draw = Callable[[Study, Theme], "Figure | None"]

MOST_LABELLED_BARS = 24
LEAST_BAR_WIDTHS = 7.0  # across a figure, or two bars would fill it
MOST_SOLUTIONS = 20  # of a problem; where one has more, the curve is cut off
ALIKE = 0.005  # shares that differ by less are drawn on each other
SOLVED = "problems solved (%)"
TIME_UNITS = {"hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
TOKEN_UNITS = {"billions": 1e9, "millions": 1e6, "thousands": 1e3, "": 1.0}


def pass_at_k(study: Study, theme: Theme) -> Figure | None:
    """Bars of pass@k per setting, and a line for chance."""
    settings, ks = study.evaluated, study.ks
    if len(settings) < 2:  # one setting is a row of numbers, and those are in the table
        return None
    canvas = open_canvas(study, theme, _result_origins(study, settings), height=3.6)
    axes = canvas.axes[0]
    width = min(0.84 / len(settings), 0.4)  # of the room of one k, the rest is the gap to the next
    for index, setting in enumerate(settings):
        estimates = study.estimates[setting.label]
        shown = [(place, estimates[f"pass@{k}"]) for place, k in enumerate(ks) if f"pass@{k}" in estimates]
        offset = (index - (len(settings) - 1) / 2) * width
        places = [place + offset for place, _ in shown]
        _bars(axes, canvas, setting, places, [e for _, e in shown], width, len(settings) * len(ks))
    chance = {} if study.chance is None else study.chance.metrics
    known = [(place, 100 * chance[f"pass@{k}"].value) for place, k in enumerate(ks) if f"pass@{k}" in chance]
    for place, height in known:
        axes.hlines(height, place - 0.45, place + 0.45, theme["ink"], ":", linewidth=1.4)
    axes.set_xticks(range(len(ks)), [f"pass@{k}" for k in ks])
    axes.set_ylabel(SOLVED)
    axes.margins(y=0.09)
    axes.grid(visible=False, axis="x")
    named = [(setting.label, canvas.colour(setting)) for setting in settings]
    return canvas.finished_with([*named, *[("chance, dotted", theme["ink"])] * bool(known)])


def _bars(
    axes: Axes,
    canvas: Canvas,
    setting: Setting,
    places: Sequence[float],
    estimates: Sequence[Estimate],
    width: float,
    total: int,
) -> None:
    heights = [100 * e.value for e in estimates]
    # A bootstrap interval may lie beside the mean; an error bar cannot point the other way.
    below = [max(0.0, 100 * (e.value - e.low)) for e in estimates]
    above = [max(0.0, 100 * (e.high - e.value)) for e in estimates]
    ink = canvas.theme["ink"]
    axes.bar(places, heights, width * 0.92, color=canvas.colour(setting), linewidth=0)
    axes.errorbar(places, heights, [below, above], fmt="none", ecolor=ink, elinewidth=0.8, capsize=2)
    if total <= MOST_LABELLED_BARS:
        for place, height, up in zip(places, heights, above, strict=True):
            axes.annotate(
                f"{height:.1f}".replace("100.0", "100"),  # the one number too wide for its bar
                (place, height + up),
                (0, 3),
                textcoords="offset points",
                fontsize=SMALL,
                ha="center",
                va="baseline",
            )


def objectives(study: Study, theme: Theme) -> Figure | None:
    """Bars of the largest k by self-sampling strategy and objective, with MLE as a line."""
    if not has_objectives(study):
        return None
    metric = f"pass@{study.ks[-1]}"
    settings = [setting for setting in study.evaluated if metric in study.estimates[setting.label]]
    canvas = open_canvas(study, theme, _result_origins(study, settings), height=3.6)
    axes = canvas.axes[0]
    places = _grouped_places(settings)
    for setting in settings:
        estimate = study.estimates[setting.label][metric]
        if setting.strategy == "none":
            colour, ends = canvas.colour(setting), (100 * estimate.low, 100 * estimate.high)
            axes.axhline(100 * estimate.value, color=colour, linestyle=(0, (5, 1.5)), linewidth=1.4)
            axes.axhspan(*ends, color=colour, alpha=0.15, linewidth=0, zorder=0.5)
        else:
            _bars(axes, canvas, setting, [places[setting.label]], [estimate], 0.8, total=1)
    own = [setting for setting in settings if setting.strategy != "none"]
    axes.set_xticks([places[s.label] for s in own], [label_of(s.objective) for s in own])
    for strategy in dict.fromkeys(setting.strategy for setting in own):
        middle = fmean(places[s.label] for s in own if s.strategy == strategy)
        _below_ticks(axes, STRATEGIES.get(strategy, strategy), middle)
    # Few bars stand in the middle of a wide axis instead of becoming as wide as it.
    middle, room = max(places.values()) / 2, max(max(places.values()) + 1.6, LEAST_BAR_WIDTHS) / 2
    axes.set_xlim(middle - room, middle + room)
    axes.set_ylabel(f"{metric}, {SOLVED}")
    axes.margins(y=0.09)
    axes.grid(visible=False, axis="x")
    return canvas.finished(settings, bars=True)


def _grouped_places(settings: Sequence[Setting]) -> dict[str, float]:
    """Where the bar of each setting that samples stands, with a gap between strategies."""
    place, places, last = -1.0, {}, None
    for setting in settings:
        if setting.strategy != "none":
            place += 1.0 if last in (None, setting.strategy) else 1.6
            places[setting.label], last = place, setting.strategy
    return places


def _below_ticks(axes: Axes, text: str, place: float) -> None:
    axes.annotate(
        text,
        (place, 0),
        (0, -26),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="center",
        va="top",
    )


def has_objectives(study: Study) -> bool:
    """Whether there is a choice of objectives to compare; of strategies alone, pass@k has shown it all."""
    return bool(study.ks) and len({s.objective for s in study.evaluated if s.strategy != "none"}) > 1


def solutions(study: Study, theme: Theme) -> Figure | None:
    """How many problems have at least so many kept solutions; the means are in the table."""
    settings = [setting for setting in study.sampling if setting.kept_per_problem]
    if not settings:
        return None
    origins = [study.origin_at(s, [(run, run.kept.step) for run in s.runs if run.kept]) for s in settings]
    canvas = open_canvas(study, theme, origins, height=3.0)
    axes = canvas.axes[0]
    for setting in settings:
        totals = [k.total() for run in setting.runs if run.kept for k in run.kept.kinds.values()]
        numbers = list(range(1, min(max(totals, default=1), MOST_SOLUTIONS) + 1))
        shares = [100 * sum(total >= number for total in totals) / len(totals) for number in numbers]
        axes.plot(numbers, shares, **canvas.line(setting))
    axes.set_xlabel("n, kept solutions of any kind")
    axes.set_ylabel("problems with at least n (%)")
    axes.set_ylim(0, 103)
    axes.locator_params(axis="x", integer=True)
    return canvas.finished(settings)


def training_progress(study: Study, theme: Theme) -> Figure | None:
    """pass@k on dev over training, one panel for each k; curves of many points are smoothed."""
    ks = sorted({k for setting in study.settings for k in logged_ks(setting)})
    panels = {f"eval_pass@{k}": f"pass@{k}" for k in ks}
    return _curves(study, theme, study.settings, panels, SOLVED, is_share=True, smooths=True)


def frontier(study: Study, theme: Theme) -> Figure | None:
    """pass@1 against pass@k: over training in one panel, over temperatures in another."""
    k = max((k for setting in study.settings for k in logged_ks(setting)), default=1)
    drawn = [r for run in study.runs for r in run.temperatures.values()]
    hot = max((k for result in drawn for k in result.ks), default=1)
    ways: dict[str, dict[str, Points]] = {
        f"over training, on dev (k = {k})": {s.label: _steps_of(s, k) for s in study.settings},
        f"over temperatures, {_problems_of(drawn)} (k = {hot})": {
            s.label: _temperatures_of(s, hot) for s in study.settings
        },
    }
    panels = {title: own for title, own in ways.items() if sum(map(len, own.values())) > 1}
    settings = [s for s in study.settings if any(own[s.label] for own in panels.values())]
    if not settings or max(k, hot) == 1:
        return None
    origins = [
        study.origin_over(s, "eval_pass@")
        if logged_ks(s)
        else study.origin(s, s.runs, "not evaluated in training")
        for s in settings
    ]
    canvas = open_canvas(study, theme, origins, height=3.4, columns=len(panels))
    for axes, (title, points) in zip(canvas.axes, panels.items(), strict=True):
        for setting in settings:
            for run in dict.fromkeys(one[0] for one in points[setting.label]):
                own = [one[1:] for one in points[setting.label] if one[0] == run]
                axes.plot([x for x, _, _ in own], [y for _, y, _ in own], **canvas.line(setting))
                for x, y, told in own:
                    axes.annotate(
                        told,
                        (x, y),
                        (4, 4),
                        textcoords="offset points",
                        fontsize=SMALL,
                        color=canvas.colour(setting),
                    )
        largest = f"pass@{hot if title.startswith('over temp') else k}"
        if study.chance is not None and {largest, "pass@1"} <= study.chance.metrics.keys():
            y, x = (100 * study.chance.metrics[name].value for name in (largest, "pass@1"))
            axes.axhline(y, color=theme["ink"], linestyle=":", linewidth=1)
            axes.axvline(x, color=theme["ink"], linestyle=":", linewidth=1)
            told = f"chance, {_problems_of([study.chance])}"
            axes.annotate(told, (1, y), xycoords=("axes fraction", "data"), ha="right", va="bottom")
        canvas.title(axes, title)
        axes.set_xlabel("pass@1, mean of samples (%)")
    canvas.axes[0].set_ylabel("pass@k (%)")
    return canvas.finished(settings)


def _problems_of(results: Sequence[Result]) -> str:
    """On which problems: the beginning of the names of evaluations at temperatures, or of chance."""
    stems = [one.path.stem for one in results if one.path is not None]
    return f"on {', '.join(dict.fromkeys(re.sub(r'-(T[0-9.]+|chance)$', '', stem) for stem in stems))}"


Points = list[tuple[int, float, float, str]]  # the run's number, pass@1, pass@k, what is told of it


def _steps_of(setting: Setting, k: int) -> Points:
    points = []
    for number, run in enumerate(setting.runs):
        ones = run.curves.get("eval_pass@1_at_temperature") or run.curves.get("eval_pass@1", {})
        many = run.curves.get(f"eval_pass@{k}", {})
        points += [(number, 100 * ones[s], 100 * many[s], "") for s in many if s in ones]
    return points


def _temperatures_of(setting: Setting, k: int) -> Points:
    return [
        (number, 100 * r.metrics["pass@1"].value, 100 * r.metrics[f"pass@{k}"].value, f"T={t:g}")
        for number, run in enumerate(setting.runs)
        for t, r in sorted(run.temperatures.items())
        if {"pass@1", f"pass@{k}"} <= r.metrics.keys()
    ]


def loss(study: Study, theme: Theme) -> Figure | None:
    """The loss and the learning rate over training."""
    panels = {"loss": "loss", "learning_rate": "learning rate"}
    return _curves(study, theme, study.settings, panels, "")


def buffer_growth(study: Study, theme: Theme) -> Figure | None:
    """Solutions per problem over training; how many problems have one, where some lack a reference."""
    panels = {
        "buffer/fcs_per_problem": "FCS per problem, reference included",
        "buffer/pcs_per_problem": "PCS per problem",
        "buffer/problems_with_a_solution": "problems with a solution",
    }
    return _curves(study, theme, study.sampling, panels, "kept solutions")


def unique(study: Study, theme: Theme) -> Figure | None:
    """The share of distinct samples in evaluations over training."""
    panels = {"eval_unique": "distinct texts", "eval_unique_alpha": "distinct up to names of variables"}
    if all(_look_alike(*(setting.band(key) for key in panels)) for setting in study.settings):
        panels.popitem()  # nothing differs by the names of variables only: one panel says it all
    return _curves(study, theme, study.settings, panels, "share of samples (%)", is_share=True)


def logged_ks(setting: Setting) -> tuple[int, ...]:
    """Every k whose pass@k is logged while training."""
    keys = [key for run in setting.runs for key in run.curves if key.startswith("eval_")]
    return passes_in(key.removeprefix("eval_") for key in keys)


def _look_alike(band: Band, other: Band) -> bool:
    """Whether two curves of shares lie on each other for the eye."""
    pairs = zip(band.means, other.means, strict=False)
    return band.steps == other.steps and all(abs(a - b) < ALIKE for a, b in pairs)


def _curves(
    study: Study,
    theme: Theme,
    settings: Sequence[Setting],
    panels: Mapping[str, str],
    up: str,
    *,
    is_share: bool = False,
    smooths: bool = False,
) -> Figure | None:
    """What was logged over training: a panel for each key that some run has, a curve for each setting."""
    bands = {
        key: {s.label: band for s in settings if (band := s.band(key)).steps and _may_have(s, key)}
        for key in panels
    }
    panels = {key: title for key, title in panels.items() if bands[key]}
    settings = [setting for setting in settings if any(setting.label in bands[key] for key in panels)]
    if not panels:
        return None
    origins = [study.origin_over(setting, tuple(panels)) for setting in settings]
    columns = _columns(len(panels))
    height = 2.4 if len(panels) > columns else 3.0
    canvas = open_canvas(study, theme, origins, height=height, columns=columns, panels=len(panels))
    for axes, (key, title) in zip(canvas.axes, panels.items(), strict=True):
        for setting in settings:
            if setting.label in bands[key]:
                _curve(axes, canvas, setting, bands[key][setting.label], 100 if is_share else 1, smooths)
        canvas.title(axes, title)
        top = min(103.0, max(10.0, 1.08 * axes.dataLim.y1)) if is_share else None  # with room for markers
        axes.set_ylim(min(0.0, axes.dataLim.y0), top)  # the loss of a policy gradient may be below 0
    canvas.label_outer("training step", up)
    return canvas.finished(settings)


def _may_have(setting: Setting, key: str) -> bool:
    """Whether a number says anything of a setting: that of PCS is 0 where none are kept."""
    return setting.strategy == "fcs+pcs" or not key.startswith("buffer/pcs")


def _columns(panels: int) -> int:
    # Four are two by two: three and one would look like a mistake.
    return {1: 1, 2: 2, 4: 2}.get(panels, 3)


def _curve(axes: Axes, canvas: Canvas, setting: Setting, band: Band, scale: float, smooths: bool) -> None:
    colour = canvas.colour(setting)
    if smooths and len(band.steps) > FEW_POINTS:
        axes.plot(band.steps, [scale * mean for mean in band.means], color=colour, alpha=0.3, linewidth=1.0)
        band = band.smoothed()
    axes.plot(band.steps, [scale * mean for mean in band.means], **canvas.line(setting, len(band.steps)))
    if band.has_width:
        lows, highs = ([scale * value for value in ends] for ends in (band.lows, band.highs))
        axes.fill_between(band.steps, lows, highs, color=colour, alpha=0.15, linewidth=0)


def outcomes(study: Study, theme: Theme) -> Figure | None:
    """What became of self-samples over training, one panel for each setting."""
    settings = [setting for setting in study.settings if setting.shares.drawn]
    if not settings:
        return None
    verdicts = verdicts_of(setting.shares.totals for setting in settings)
    origins = [study.origin_over(s, "samples/frac_") for s in settings]
    columns = _columns(len(settings))
    height = 2.4 if len(settings) > columns else 3.2
    canvas = open_canvas(study, theme, origins, height=height, columns=columns, panels=len(settings))
    for axes, setting in zip(canvas.axes, settings, strict=True):
        shares = setting.shares
        bottom = [0.0] * (len(shares.edges) - 1)  # verdicts are stacked, stretch by stretch
        for verdict, (colour, _) in verdicts.items():
            top = [low + 100 * share for low, share in zip(bottom, shares.shares[verdict], strict=True)]
            axes.stairs(top, shares.edges, baseline=bottom, fill=True, color=theme[colour], linewidth=0)
            bottom = top
        canvas.title(axes, setting.label)
        axes.set_ylim(0, 100)
        axes.set_xlim(shares.edges[0], shares.edges[-1])
    canvas.label_outer("training step", "self-samples (%)")
    return canvas.finished_with([(name, theme[colour]) for colour, name in verdicts.values()])


def work(study: Study, theme: Theme) -> Figure | None:
    """Time per part of training, and tokens sampled and learned from, mean over runs."""
    settings = [setting for setting in study.settings if setting.work]
    if len(settings) < 2:
        return None
    origins = [study.origin_at(s, [(run, run.step) for run in s.runs if run.work]) for s in settings]
    canvas = open_canvas(study, theme, origins, height=1.7 + 0.3 * len(settings), columns=2)
    seconds = [{span: part.seconds for span, part in s.work.items()} for s in settings]
    tokens = [
        {span: part.tokens for span, part in s.work.items() if part.tokens is not None} for s in settings
    ]
    left, right = canvas.axes
    _stacks(left, theme, seconds, "time per run", TIME_UNITS)
    _stacks(right, theme, tokens, "tokens per run", TOKEN_UNITS)
    left.set_yticks(range(len(settings)), [setting.label for setting in settings])
    right.set_yticks([])
    return canvas.finished_with([(span, theme[colour]) for span, colour in SPAN_COLOURS.items()])


def _stacks(
    axes: Axes, theme: Theme, rows: Sequence[Mapping[str, float]], label: str, units: Mapping[str, float]
) -> None:
    """A stacked bar for each row, in the largest unit of which the longest bar has a few."""
    longest = max(sum(row.values()) for row in rows)
    unit = next((unit for unit, size in units.items() if longest >= 3 * size), list(units)[-1])
    for number, row in enumerate(rows):
        start = 0.0
        for span, amount in row.items():
            width = amount / units[unit]
            axes.barh(number, width, 0.62, start, color=theme[SPAN_COLOURS[span]], linewidth=0)
            start += width
    axes.set_xlabel(f"{label} ({unit})" if unit else label)
    axes.set_ylim(len(rows) - 0.5, -0.5)  # downwards, as one reads
    axes.grid(visible=False, axis="y")
    axes.locator_params(axis="x", nbins=6)


def _result_origins(study: Study, settings: Sequence[Setting]) -> list[str]:
    return [
        study.origin_at(
            s, [(run, run.results[study.split].step) for run in s.runs if study.split in run.results]
        )
        for s in settings
    ]
