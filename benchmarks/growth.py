"""`python -m benchmarks growth`: seconds per step and peak memory as one thing grows and the rest stays."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.tables import print_table


@dataclass(frozen=True)
class Setting:
    """What is measured: training steps of so many problems each, with so much of everything."""

    solutions: int = 1  # kept per problem
    problems: int = 1_000
    size: str = "1M"
    samples: int = 1  # per problem
    processes: int = 1
    batch: int = 16
    steps: int = 4


AXES: dict[str, tuple[int | str, ...]] = {
    "solutions": (1, 4, 16, 64),
    "problems": (1_000, 10_000, 100_000, 1_000_000),
    "size": ("1M", "10M", "135M"),
    "samples": (1, 8, 32, 128),
    "processes": (1, 2),
}
COLUMNS = ("", "seconds per step", "exploring", "learning", "first step after", "peak MB", "tokens learned")


@click.command()
@click.option(
    "--of",
    "axes",
    multiple=True,
    type=click.Choice(list(AXES)),
    help="What is to grow; may be given again. All if left out.",
)
@click.option("--up-to", type=int, help="Leave out rows beyond this number (sizes are always run).")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file of rows: those in it are not measured again, new ones are added.",
)
@click.option("--seconds", default=240, show_default=True, help="A row that takes longer is given up.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(
    ctx: click.Context,
    axes: Sequence[str],
    up_to: int | None,
    out: Path | None,
    seconds: int,
    as_json: bool,
) -> None:
    """Steps of 16 synthetic problems, one thing grown at a time; each row in a process of its own.

    Samples of the random weights go on to their longest length, so that all rows draw alike.

    \b
    Examples:
      python -m benchmarks growth --out growth.jsonl
      python -m benchmarks growth --of problems --up-to 100000 --json
    """
    known = _read(out)
    for setting in settings(axes or list(AXES), up_to):
        if setting in known:
            continue
        if not ctx.obj["quiet"]:
            click.echo(f"{_differing(setting)} ...", err=True)
        known[setting] = measured(setting, seconds)
        if out is not None:
            with out.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({"setting": asdict(setting), **known[setting]}) + "\n")
    rows = {axis: [(s, known[s]) for s in grown(axis, up_to)] for axis in axes or AXES}
    if as_json:
        found = {
            axis: [{axis: getattr(s, axis), **row} for s, row in of_axis] for axis, of_axis in rows.items()
        }
        click.echo(json.dumps(found))
    else:
        show(rows)


def settings(axes: Sequence[str], up_to: int | None) -> list[Setting]:
    """Every row of the tables once; what all have in common is measured once."""
    return list(dict.fromkeys(setting for axis in axes for setting in grown(axis, up_to)))


def grown(axis: str, up_to: int | None) -> Iterator[Setting]:
    """The rows of one table."""
    for value in AXES[axis]:
        if up_to is None or isinstance(value, str) or value <= up_to:
            yield Setting(**(asdict(Setting()) | {axis: value}))


def measured(setting: Setting, seconds: int) -> dict[str, Any]:
    """What a process of its own finds, or why it found nothing."""
    launcher = ["-m", "torch.distributed.run", f"--nproc-per-node={setting.processes}", "--no-python"]
    words = [sys.executable, "-m", "benchmarks.growth_row", json.dumps(asdict(setting))]
    started = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, *launcher, *words] if setting.processes > 1 else words,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"refused": f"not done within {seconds} seconds"}
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"seconds')]
    if not lines:
        return {"refused": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no result"}
    found: dict[str, Any] = json.loads(lines[-1])
    return found | {"whole_seconds": round(time.perf_counter() - started, 1)}


def _read(out: Path | None) -> dict[Setting, dict[str, Any]]:
    if out is None or not out.exists():
        return {}
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return {Setting(**row.pop("setting")): row for row in rows}


def _differing(setting: Setting) -> str:
    plain = asdict(Setting())
    return (
        ", ".join(f"{name} {value}" for name, value in asdict(setting).items() if value != plain[name])
        or "the smallest of everything"
    )


def show(rows: dict[str, list[tuple[Setting, dict[str, Any]]]]) -> None:
    """A table for each thing that grew."""
    for axis, of_axis in rows.items():
        print_table(axis, COLUMNS, [_cells(getattr(s, axis), row) for s, row in of_axis])


def _cells(value: Any, row: dict[str, Any]) -> tuple[str, ...]:
    name = f"{value:,}" if isinstance(value, int) else value
    if "refused" in row:
        return name, row["refused"], *[""] * (len(COLUMNS) - 2)
    return (
        name,
        f"{row['seconds']:.3f}",
        f"{row['exploring']:.3f}",
        f"{row['learning']:.3f}",
        f"{row['start_seconds']:.1f} s",
        f"{row['megabytes']:,.0f}",
        f"{row['tokens_learned']:,}",
    )
