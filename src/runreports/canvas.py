"""A figure of panels with a legend above and the names of its runs below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from runreports.study import Setting, Study
from runreports.theme import Look, Theme, styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 9.0  # inches
SMALL = 7.5  # points of the small print
LEGEND_CHARACTERS = 112  # that fit side by side
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
    styles: Mapping[str, Look]

    def colour(self, setting: Setting) -> str:
        return self.theme[self.styles[setting.label].colour]

    def line(self, setting: Setting, points: int = 1) -> dict[str, Any]:
        """What `plot` needs for a line of so many points; few are marked, and one could not be seen else."""
        style = self.styles[setting.label]
        marked = {"marker": style.marker} if points <= MOST_MARKED else {}
        return {"color": self.colour(setting), "linestyle": style.dashes, **marked}

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
        lines = [Line2D([], [], **self.line(setting, points=MOST_MARKED + 1)) for setting in settings]
        return self._with_legend(lines, [setting.label for setting in settings], 2.6)

    def finished_with(self, patches: Sequence[tuple[str, str]]) -> Figure:
        """The figure with a legend of names and colours."""
        from matplotlib.patches import Patch

        return self._with_legend(
            [Patch(color=colour, linewidth=0) for _, colour in patches], [name for name, _ in patches], 1.2
        )

    def _with_legend(self, handles: Sequence[Any], labels: Sequence[str], handle: float) -> Figure:
        # In characters: the text, the space around it, and the handle, measured in letters twice as wide.
        longest = max(len(label) for label in labels) + 4 + 2 * handle
        columns = max(1, min(len(labels), int(LEGEND_CHARACTERS // longest)))
        # Outside the figure, which is saved with all that is drawn: a long legend takes nothing from it.
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1)}
        self.figure.legend(handles, labels, **place, ncols=columns, handlelength=handle)
        return self.figure


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

    panels = panels or columns
    rows = ceil(panels / columns)
    figure = Figure(figsize=(WIDTH, rows * height))
    axes = figure.subplots(rows, columns, squeeze=False).flatten()
    for unused in axes[panels:]:
        unused.set_axis_off()
    lines = [line for one in origins for line in wrap(one, ORIGIN_CHARACTERS, subsequent_indent="    ")]
    look: dict[str, Any] = {"fontsize": SMALL, "color": theme["muted"], "linespacing": 1.35}
    figure.text(0.01, -0.02, "\n".join(lines), va="top", **look)
    return Canvas(figure, tuple(axes[:panels]), columns, theme, styles(study.settings))
