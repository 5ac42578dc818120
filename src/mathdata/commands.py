"""`partway data gsm8k` and `partway data mathqa`: published data sets to files of problems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from partway.cli.options import AS_JSON, declared
from partway.data.commands import OUT, REJECTS, SOURCE, finish

if TYPE_CHECKING:
    from mathdata.gsm8k.converting import Style


@click.command()
@SOURCE
@OUT
@declared(
    "--style",
    type=click.Choice(["partway", "paper"]),
    default="partway",
    show_default=True,
    help="'paper' selects and writes solutions as the paper's authors did.",
)
@REJECTS
@AS_JSON
@click.pass_context
def gsm8k(
    ctx: click.Context, source: Path | None, out: Path, style: Style, rejects: Path | None, as_json: bool
) -> None:
    """Make problems of GSM8K, with solutions from its annotated texts; the last 20% of train become dev.

    \b
    Examples:
      partway data gsm8k --source downloads/gsm8k --out data/gsm8k
      partway data gsm8k --out data/gsm8k --rejects rejects.jsonl
      partway data gsm8k --source downloads/gsm8k --out data/gsm5.5k --style paper
    """
    from mathdata.gsm8k import convert_gsm8k
    from mathdata.raw import GSM8K, read_raw
    from partway.cli.parallel import cores
    from partway.cli.progress import Bar

    raw = read_raw(GSM8K, source)
    with Bar("converting GSM8K", "rows", quiet=ctx.obj["quiet"]) as bar:
        conversion = convert_gsm8k(
            raw["train"], raw["test"], style=style, processes=cores(), progress=bar.show
        )
    finish(conversion, out, rejects, as_json)


@click.command()
@SOURCE
@OUT
@declared("--filtered", is_flag=True, help="The paper's filtered version, without near-copies.")
@declared(
    "--split-index",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    needs="filtered",
    help="The published row numbers of the filtered version; without it, a rule chooses nearly the same.",
)
@REJECTS
@AS_JSON
@click.pass_context
def mathqa(
    ctx: click.Context,
    source: Path | None,
    out: Path,
    filtered: bool,
    split_index: Path | None,
    rejects: Path | None,
    as_json: bool,
) -> None:
    """Make problems of MathQA as MathQA-Python does: the published selection, but programs without scipy.

    \b
    Examples:
      partway data mathqa --source downloads/mathqa --out data/mathqa
      partway data mathqa --source downloads/mathqa --out data/mathqa-filtered \\
        --filtered --split-index filtered_split.json
    """
    from mathdata.mathqa import convert_mathqa, filter_mathqa, read_split_index
    from mathdata.raw import MATHQA, read_raw
    from partway.cli.progress import Bar

    index = read_split_index(split_index) if split_index else None  # before a download
    raw = read_raw(MATHQA, source)
    with Bar("converting MathQA", "rows", quiet=ctx.obj["quiet"]) as bar:
        conversion = convert_mathqa(raw, progress=bar.show)
    if filtered:
        with Bar("finding near-copies", "questions", quiet=ctx.obj["quiet"]) as bar:
            conversion = filter_mathqa(conversion, index, progress=bar.show)
    finish(conversion, out, rejects, as_json)
