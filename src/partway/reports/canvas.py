"""A figure with panels, a legend above them and the runs it was made from below; nothing overlaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from partway.reports.study import Setting, Study
from partway.reports.theme import SMALL, Style, Theme, styles

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.text import Text

WIDTH = 9.0  # inches
LINE = 0.155  # inches from line to line of the small print
LEGEND_CHARACTERS = 112  # that fit side by side
LEGEND_LINE = 0.24  # inches
SPARE_LINES = 2  # of a legend that panels have room for
BOTTOM = 0.06  # inches below the small print
ORIGIN_CHARACTERS = 150  # of a line of the small print
TITLE_CHARACTERS = 96  # of a line of titles, shared by all panels side by side
MOST_MARKED = 12  # points of a curve; more markers would hide it


@dataclass(frozen=True)
class Canvas:
    """Axes to draw on, and how each setting looks on them."""

    figure: Figure
    axes: tuple[Axes, ...]
    columns: int
    theme: Theme
    styles: Mapping[str, Style]
    layout: ConstrainedLayoutEngine
    small_print: Text  # below the panels
    foot: float  # inches for it

    def colour(self, setting: Setting) -> str:
        return self.theme[self.styles[setting.label].colour]

    def marker(self, setting: Setting) -> str:
        return self.styles[setting.label].marker

    def line(self, setting: Setting) -> dict[str, Any]:
        """What `plot` needs to draw the setting's line."""
        return {"color": self.colour(setting), "linestyle": self.styles[setting.label].dashes}

    def curve(self, setting: Setting, points: int) -> dict[str, Any]:
        """The same for a curve of so many points; few are marked, and one alone could not be seen else."""
        marked = {"marker": self.marker(setting)} if points <= MOST_MARKED else {}
        return {**self.line(setting), **marked}

    def title(self, axes: Axes, text: str) -> None:
        """A title above a panel, in as many lines as it needs."""
        axes.set_title("\n".join(wrap(text, TITLE_CHARACTERS // self.columns)))

    def label_outer(self, across: str, up: str) -> None:
        """Label the axes at the left and those without another below; what goes across is counted."""
        for index, axes in enumerate(self.axes):
            axes.locator_params(axis="x", integer=True, min_n_ticks=1)
            if index % self.columns == 0:
                axes.set_ylabel(up)
            if index + self.columns >= len(self.axes):
                axes.set_xlabel(across)

    def finished(self, settings: Sequence[Setting], *, bars: bool = False) -> Figure:
        """The figure with a legend of settings, as bars or as lines."""
        from matplotlib.lines import Line2D

        if bars:
            return self.finished_with([(setting.label, self.colour(setting)) for setting in settings])
        lines = [Line2D([], [], **self.line(setting)) for setting in settings]
        return self._with_legend(lines, [setting.label for setting in settings], 2.6)

    def finished_with(self, patches: Sequence[tuple[str, str]]) -> Figure:
        """The figure with a legend of names and colours."""
        from matplotlib.patches import Patch

        return self._with_legend(
            [Patch(color=colour, linewidth=0) for _, colour in patches], [name for name, _ in patches], 1.2
        )

    def _with_legend(self, handles: Sequence[Artist], labels: Sequence[str], handle: float) -> Figure:
        # In characters: the text, the space around it, and the handle, measured in letters twice as wide.
        longest = max(len(label) for label in labels) + 4 + 2 * handle
        columns = max(1, min(len(labels), int(LEGEND_CHARACTERS // longest)))
        self.figure.legend(handles, labels, loc="outside upper left", ncols=columns, handlelength=handle)
        self._grow(LEGEND_LINE * max(0, ceil(len(labels) / columns) - SPARE_LINES))
        return self.figure

    def _grow(self, inches: float) -> None:
        """Make the figure taller; what was laid out in shares of its height is told again."""
        total = self.figure.get_figheight() + inches
        self.figure.set_figheight(total)
        self.layout.set(rect=_above(self.foot, total))
        self.small_print.set_y(BOTTOM / total)


def open_canvas(
    study: Study,
    theme: Theme,
    origins: Sequence[str],
    *,
    height: float,
    columns: int = 1,
    panels: int | None = None,
) -> Canvas:
    """A figure of `panels` in `columns`, each `height` inches, with the origin of every setting below."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    panels = panels or columns
    lines = [line for one in origins for line in wrap(one, ORIGIN_CHARACTERS, subsequent_indent="    ")]
    rows = ceil(panels / columns)
    foot = LINE * (len(lines) + 1)  # kept free below the panels, which matplotlib lays out by itself
    total = rows * height + foot
    layout = ConstrainedLayoutEngine(rect=_above(foot, total), w_pad=0.08, h_pad=0.06)
    figure = Figure(figsize=(WIDTH, total), layout=layout)
    axes = figure.subplots(rows, columns, squeeze=False).flatten()
    for unused in axes[panels:]:
        unused.set_axis_off()
    small_print = figure.text(
        0.01,
        BOTTOM / total,
        "\n".join(lines),
        va="bottom",
        fontsize=SMALL,
        color=theme["muted"],
        linespacing=1.35,
    )
    return Canvas(
        figure, tuple(axes[:panels]), columns, theme, styles(study.settings), layout, small_print, foot
    )


def _above(foot: float, total: float) -> tuple[float, float, float, float]:
    """The part of a figure above its foot: left, bottom, width and height as shares."""
    return 0, foot / total, 1, 1 - foot / total
