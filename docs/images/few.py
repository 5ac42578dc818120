"""Draws few.svg from docs/runs/counts.json: what answers are worth where written solutions are few.

python docs/images/few.py
"""

import runpy
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

HERE = Path(__file__).parent
COUNTS = runpy.run_path(str(HERE.parent / "runs/counts.py"))
MLE, OURS, GREY = "#8a5a00", "#0b6b8f", "#5b6470"
GEO = {
    share: tuple([f"geo_again_{part}{arm}{seed}" for seed in ("", "_s1")] for arm in ("mle", "fcs_pcs"))
    for share, part in ((10, "tenth_"), (25, "quarter_"), (100, ""))
}
GSM8K = {6: (["few_mle"], ["few_fcs"]), 100: (["few_all"], [])}
MATHQA = {5: (["five_mle"], ["five_rft"]), 25: (["quarter_mle"], ["quarter_fcs"]), 100: (["full_mle"], [])}


def main() -> None:
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "few", "font.size": 11})
    figure = Figure(figsize=(11, 3.7), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    draw(left, GSM8K, 40, "GSM8K, two steps; one seed", "and answers of the rest (FCS)")
    draw(middle, GEO, 82, "SQL on GeoQuery; two seeds", "and answers of the rest (FCS+PCS)")
    draw(right, MATHQA, 82, "MathQA; one seed", "and answers of the rest (RFT, FCS)")
    left.set_ylabel("% of test problems solved\nat the first try")
    figure.savefig(HERE / "few.svg", metadata={"Date": None})


def draw(axes: Axes, arms: dict[int, tuple[list[str], ...]], top: int, title: str, ours: str) -> None:
    """A line through the means of each side; a dot is a seed."""
    for side, (colour, label) in enumerate([(MLE, "written solutions alone (MLE)"), (OURS, ours)]):
        dots = {
            share: [first_try(name) for name in names[side]] for share, names in arms.items() if names[side]
        }
        means = [sum(seeds) / len(seeds) for seeds in dots.values()]
        axes.plot(list(dots), means, color=colour, linewidth=2, label=label)
        for share, seeds in dots.items():
            axes.plot([share] * len(seeds), seeds, "o", color=colour, markersize=5)
    axes.set_xscale("log")
    axes.set_xticks(list(arms), [f"{share}%" for share in arms])
    axes.minorticks_off()
    axes.set_ylim(0, top)
    axes.set_xlabel("problems with a written solution", color=GREY)
    axes.set_title(title, loc="left", fontsize=12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", fontsize=10)


def first_try(name: str) -> float:
    """pass@1 in %: the one sample at T=0.2 where it was drawn alone, else the mean of all samples."""
    scores = COUNTS["scores"](COUNTS["read"]()["evaluations"][name])["pass@1"]
    return 100 * sum(scores) / len(scores)


if __name__ == "__main__":
    main()
