"""The look of figures on a light and on a dark page: each colour has one name and two values.

The hues are those of Okabe and Ito, which colour-blind readers can tell apart; line styles and markers say
the same again for prints without colour.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path

from partway.buffer import Verdict
from partway.objectives import named_objective
from runreports.study import Setting
from runreports.summaries import SPANS

STYLE = Path(__file__).parent / "figures.mplstyle"


Theme = Mapping[str, str]  # colours by name
# No colour occurs twice: an SVG is told from light to dark by replacing one by the other.
LIGHT = {
    "paper": "#ffffff",
    "ink": "#1b1f24",
    "muted": "#5b6470",
    "grid": "#dde2e7",
    "blue": "#0072b2",
    "orange": "#e69f00",
    "green": "#009e73",
    "vermilion": "#d55e00",
    "sky": "#56b4e9",
    "purple": "#cc79a7",
    "grey": "#b5bbc2",
    "dark": "#4d545c",
    "brown": "#8c5a3c",
}
DARK = {
    "paper": "#15181c",
    "ink": "#e8eaed",
    "muted": "#a6aeb8",
    "grid": "#343b43",
    "blue": "#3f93d3",
    "orange": "#f2b632",
    "green": "#2fbd93",
    "vermilion": "#f07f45",
    "sky": "#a4d8f7",
    "purple": "#dc9cc1",
    "grey": "#69717a",
    "dark": "#c3c9d0",
    "brown": "#c08f70",
}

COLOURS_OF_VERDICTS = {  # dark is new, light is known
    Verdict.KNOWN_FULLY_CORRECT: "sky",
    Verdict.NEW_FULLY_CORRECT: "blue",
    Verdict.NEW_PARTIALLY_CORRECT: "vermilion",
    Verdict.KNOWN_PARTIALLY_CORRECT: "orange",
    Verdict.TOO_LONG: "purple",
    Verdict.SPURIOUS: "brown",
    Verdict.INCORRECT: "grey",
    Verdict.NOT_EXECUTABLE: "dark",
}


def verdicts_of(totals: Iterable[Mapping[Verdict, float]]) -> dict[Verdict, tuple[str, str]]:
    """The verdicts to show with colours and names; those beyond the paper's only where they occur."""
    occurring = {verdict for counts in totals for verdict, count in counts.items() if count}
    shown = (v for v in COLOURS_OF_VERDICTS if v in occurring or not v.is_optional)
    return {v: (COLOURS_OF_VERDICTS[v], v.words) for v in shown}


SPAN_COLOURS = dict(zip(SPANS, ("orange", "purple", "blue", "green", "grey", "dark"), strict=True))


@dataclass(frozen=True)
class Look:
    """How a setting is drawn, the same in every figure."""

    colour: str
    marker: str
    dashes: str | tuple[int, tuple[float, ...]]


_DASHES: tuple[str | tuple[int, tuple[float, ...]], ...] = (
    *("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1, 1.5))),
    *((0, (3, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (2.5, 2.5))),
)
_HUES = ("blue", "green", "orange", "purple", "sky", "vermilion", "dark")


def styles(settings: Sequence[Setting]) -> dict[str, Look]:
    """A style for each setting by its label; the paper's settings always have the same colour."""
    wanted = [
        None if (found := named_objective(s.objective)) is None else found.colours.get(s.strategy)
        for s in settings
    ]
    spare = cycle([hue for hue in _HUES if hue not in wanted] or _HUES)
    seen: set[str] = set()  # a second setting of the same name in the paper gets another colour
    result = {}
    for setting, colour, dashes, marker in zip(
        settings, wanted, cycle(_DASHES), cycle("osD^vPX*"), strict=False
    ):
        if colour is None or colour in seen:
            colour = next(spare)
        seen.add(colour)
        result[setting.label] = Look(colour, marker, dashes)
    return result


def can_draw() -> bool:
    """Whether there is something to draw with."""
    return find_spec("matplotlib") is not None


@contextmanager
def drawing(theme: Theme, salt: str) -> Iterator[None]:
    """Draw in our style with the theme's colours."""
    import matplotlib

    ink = ("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.labelcolor", "ytick.labelcolor")
    colours = {
        **dict.fromkeys(("figure.facecolor", "axes.facecolor"), theme["paper"]),
        **dict.fromkeys(ink, theme["ink"]),
        **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), theme["muted"]),
        "grid.color": theme["grid"],
    }
    # With a salt of their own, figures have the same ids, so the same bytes, every time.
    with matplotlib.rc_context({**colours, "svg.hashsalt": salt}, STYLE), warnings.catch_warnings():
        # A run may be named in a script that the font lacks: in an SVG, the reader's font has it.
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        yield


def inline(svg: str, name: str) -> str:
    """An SVG file as part of a page: colours by name, so that the page decides on them; ids of its own."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)
    # Ids are unique in a file, but a page holds several.
    svg = re.sub(r'(?<=\bid=")', f"{name}-", svg)
    svg = re.sub(r'(?<=url\(#)|(?<=href="#)', f"{name}-", svg)
    return _replaced(svg, {colour: f"var(--{name})" for name, colour in LIGHT.items()})


def darkened(svg: str) -> str:
    """An SVG drawn in the light theme, in the dark one."""
    return _replaced(svg, {colour: DARK[name] for name, colour in LIGHT.items()})


def _replaced(svg: str, colours: Mapping[str, str]) -> str:
    return re.sub(r"#[0-9a-f]{6}\b", lambda match: colours.get(match[0], match[0]), svg)


def css_variables(theme: Theme) -> str:
    """The colours as custom properties."""
    return "".join(f"--{name}: {colour}; " for name, colour in theme.items()).strip()
