"""Evaluations and comparisons as tables on standard output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from partway.cli.table_style import plain_table

if TYPE_CHECKING:
    from partway.evaluation import Comparison, Estimate

MEANINGS = {
    "executable": "runs to its end",
    "unique": "distinct texts",
    "unique_canonical": "distinct, spelling aside",
    "unique_alpha": "distinct, names of variables aside",
}


def show_summary(summary: Mapping[str, Any]) -> None:
    """Every metric with its interval."""
    drawn = f"{summary['samples']} samples at temperature {summary['temperature']:g}"
    title = f"{summary['problems']:,} problems, {drawn}"
    table = plain_table("metric", "value", "95% interval", "", title=title)
    for name, metric in summary["metrics"].items():
        interval = f"{_percent(metric['low'])} to {_percent(metric['high'])}"
        table.add_row(name, _percent(metric["value"]), interval, _meaning(name, summary))
    Console().print(table)


def _meaning(name: str, summary: Mapping[str, Any]) -> str:
    if name == "pass@1" and summary["pass1_samples"]:
        return f"drawn apart, at temperature {summary['pass1_temperature']:g}"
    return MEANINGS.get(name, "")


def show_comparison(comparison: Comparison, first: str, second: str) -> None:
    """Both sides and the difference; a star marks an interval without 0."""
    title = f"A: {escape(first)}\nB: {escape(second)}\n{comparison.problems:,} problems in common"
    if comparison.left_out:
        title += f", {comparison.left_out:,} left out that only one has"
    table = plain_table("metric", "A", "B", "B - A", "95% interval", "", title=title)
    for name, difference in comparison.difference.items():
        sides = (_percent(side[name].value) for side in (comparison.first, comparison.second))
        interval = f"{_percent(difference.low, '+')} to {_percent(difference.high, '+')}"
        table.add_row(name, *sides, _percent(difference.value, "+"), interval, _star(difference))
    Console().print(table)


def _star(difference: Estimate) -> str:
    return "*" if difference.low > 0 or difference.high < 0 else ""


def _percent(share: float, sign: str = "") -> str:
    return f"{100 * share:{sign}.1f}%"
