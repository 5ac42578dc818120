"""The figures over training: pass@k, the buffers, what became of self-samples, how distinct samples are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partway.reports.averages import FEW_POINTS, Band
from partway.reports.canvas import Canvas, open_canvas
from partway.reports.study import Setting, Study
from partway.reports.summaries import passes_in
from partway.reports.theme import Theme, verdicts_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEPS = "training step"
ALIKE = 0.005  # shares that differ by less are drawn on each other
STITCHED = "buffer/stitched_per_problem"


def training_progress(study: Study, theme: Theme) -> Figure | None:
    """pass@k on dev over training, one panel for each k; only curves of many points are smoothed."""
    settings = [setting for setting in study.settings if logged_ks(setting)]
    ks = sorted({k for setting in settings for k in logged_ks(setting)})
    if not ks:
        return None
    origins = [study.origin_over(s, "eval_pass@") for s in settings]
    canvas = open_canvas(study, theme, origins, height=2.4, columns=_columns(len(ks)), panels=len(ks))
    for axes, k in zip(canvas.axes, ks, strict=True):
        for setting in settings:
            _smooth_line(axes, canvas, setting, setting.band(f"eval_pass@{k}"))
        canvas.title(axes, f"pass@{k}")
        axes.set_ylim(0, min(103.0, max(10.0, 1.08 * axes.dataLim.y1)))  # shares, with room for markers
    canvas.label_outer(STEPS, "problems solved (%)")
    return canvas.finished(settings)


def logged_ks(setting: Setting) -> tuple[int, ...]:
    """Every k whose pass@k is logged while training."""
    keys = [key for run in setting.runs for key in run.curves if key.startswith("eval_")]
    return passes_in(key.removeprefix("eval_") for key in keys)


def _columns(panels: int) -> int:
    # Four are two by two: three and one would look like a mistake.
    return {1: 1, 2: 2, 4: 2}.get(panels, 3)


def _smooth_line(axes: Axes, canvas: Canvas, setting: Setting, band: Band) -> None:
    if len(band.steps) <= FEW_POINTS:
        _line(axes, canvas, setting, band, scale=100)
        return
    means = [100 * value for value in band.means]
    axes.plot(band.steps, means, color=canvas.colour(setting), alpha=0.3, linewidth=1.0)
    _line(axes, canvas, setting, band.smoothed(), scale=100, shade=0.13)


def loss(study: Study, theme: Theme) -> Figure | None:
    """The loss and the learning rate over training."""
    panels = {"loss": "loss", "learning_rate": "learning rate"}
    settings = [s for s in study.settings if any("loss" in run.curves for run in s.runs)]
    if not settings:
        return None
    shown = [key for key in panels if any(key in run.curves for s in settings for run in s.runs)]
    origins = [study.origin_over(s, "loss") for s in settings]
    canvas = open_canvas(study, theme, origins, height=2.8, columns=len(shown))
    for axes, key in zip(canvas.axes, shown, strict=True):
        for setting in settings:
            _line(axes, canvas, setting, setting.band(key))
        canvas.title(axes, panels[key])
        axes.set_ylim(bottom=min(0.0, axes.dataLim.y0))  # that of a policy gradient may be below 0
    canvas.label_outer(STEPS, "")
    return canvas.finished(settings)


def buffer_growth(study: Study, theme: Theme) -> Figure | None:
    """Fully- and partially-correct solutions per problem over training."""
    settings = [s for s in study.sampling if any("buffer/fcs_per_problem" in run.curves for run in s.runs)]
    if not settings:
        return None
    origins = [study.origin_over(s, "buffer/") for s in settings]
    with_partial = [setting for setting in settings if setting.strategy == "fcs+pcs"]
    stitching = [s for s in settings if max(s.band(STITCHED).means, default=0) > 0]
    panels = [
        panel
        for panel in (
            ("fcs", "FCS per problem, reference included", settings),
            ("stitched", "stitched per problem", stitching),
            ("pcs", "PCS per problem", with_partial),
        )
        if panel[2]
    ]
    canvas = open_canvas(study, theme, origins, height=3.0, columns=len(panels))
    for axes, (kind, title, shown) in zip(canvas.axes, panels, strict=True):
        for setting in shown:
            _line(axes, canvas, setting, setting.band(f"buffer/{kind}_per_problem"))
        canvas.title(axes, title)
        axes.set_ylim(bottom=0)
    canvas.label_outer(STEPS, "kept solutions")
    return canvas.finished(settings)


def _line(
    axes: Axes, canvas: Canvas, setting: Setting, band: Band, scale: float = 1.0, shade: float = 0.15
) -> None:
    means = [scale * value for value in band.means]
    axes.plot(band.steps, means, **canvas.curve(setting, len(band.steps)))
    if band.has_width:
        lows, highs = ([scale * value for value in ends] for ends in (band.lows, band.highs))
        axes.fill_between(band.steps, lows, highs, color=canvas.colour(setting), alpha=shade, linewidth=0)


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
    canvas.label_outer(STEPS, "self-samples (%)")
    return canvas.finished_with([(name, theme[colour]) for colour, name in verdicts.values()])


def _look_alike(band: Band, other: Band) -> bool:
    """Whether two curves of shares lie on each other for the eye."""
    pairs = zip(band.means, other.means, strict=False)
    return band.steps == other.steps and all(abs(a - b) < ALIKE for a, b in pairs)


def unique(study: Study, theme: Theme) -> Figure | None:
    """The share of distinct samples in evaluations over training."""
    panels = {"eval_unique": "distinct texts", "eval_unique_alpha": "distinct up to names of variables"}
    settings = [s for s in study.settings if any(key in run.curves for run in s.runs for key in panels)]
    if not settings:
        return None
    if all(_look_alike(*(setting.band(key) for key in panels)) for setting in settings):
        panels.popitem()  # renaming variables is no way of being distinct here: one panel says it all
    origins = [study.origin_over(s, "eval_unique") for s in settings]
    canvas = open_canvas(study, theme, origins, height=3.0, columns=len(panels))
    for axes, (key, title) in zip(canvas.axes, panels.items(), strict=True):
        for setting in settings:
            _line(axes, canvas, setting, setting.band(key), scale=100)
        canvas.title(axes, title)
        axes.set_ylim(0, 100)
    canvas.label_outer(STEPS, "share of samples (%)")
    return canvas.finished(settings)
