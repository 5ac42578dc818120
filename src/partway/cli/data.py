"""`partway data`: raw public data, or a generator, to files of problems; and a check of such files."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from partway.cli import Group
from partway.cli.options import COLUMNS
from partway.errors import ProblemError

if TYPE_CHECKING:
    from partway.datasets import Conversion
    from partway.datasets.gsm8k.converting import Style
    from partway.datasets.storyproblems import Level

OUT = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Directory for train.jsonl, dev.jsonl and test.jsonl.",
)
SOURCE = click.option(
    "--source",
    type=click.Path(path_type=Path),
    help="Directory of the raw files; without it, they come from the Hugging Face Hub.",
)
REJECTS = click.option(
    "--rejects",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the rows without a reference, with reasons, as JSONL.",
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")


@click.group(cls=Group)
def command() -> None:
    """Prepare problems: question, answer and a reference solution that runs.

    \b
    Examples:
      partway data storyproblems --train 600 --dev 200 --test 200 --out data/stories
      partway data gsm8k --source downloads/gsm8k --out data/gsm8k
      partway data check my_problems.jsonl
    """


@command.command()
@SOURCE
@OUT
@click.option(
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
    """GSM8K: solutions from the annotated text; the last 20% of train become dev.

    \b
    Examples:
      partway data gsm8k --source downloads/gsm8k --out data/gsm8k
      partway data gsm8k --out data/gsm8k --rejects rejects.jsonl
      partway data gsm8k --source downloads/gsm8k --out data/gsm5.5k --style paper
    """
    from partway.cli.progress import Bar
    from partway.datasets import convert_gsm8k
    from partway.datasets.parallel import cores
    from partway.datasets.raw import GSM8K, read_raw

    raw = read_raw(GSM8K, source)
    with Bar("converting GSM8K", "rows", quiet=ctx.obj["quiet"]) as bar:
        conversion = convert_gsm8k(
            raw["train"], raw["test"], style=style, processes=cores(), progress=bar.show
        )
    _finish(conversion, out, rejects, as_json)


@command.command()
@SOURCE
@OUT
@click.option("--filtered", is_flag=True, help="The paper's filtered version, without near-copies.")
@click.option(
    "--split-index",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="The published row numbers of the filtered version; without it, the rule that comes closest.",
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
    """MathQA-Python: the published selection, with programs that need no scipy.

    \b
    Examples:
      partway data mathqa --source downloads/mathqa --out data/mathqa
      partway data mathqa --source downloads/mathqa --out data/mathqa-filtered \\
        --filtered --split-index filtered_split.json
    """
    from partway.cli.progress import Bar
    from partway.datasets.mathqa import convert_mathqa, filter_mathqa, read_split_index
    from partway.datasets.raw import MATHQA, read_raw

    # All of this before the raw data are read, which may mean a download.
    if split_index and not filtered:
        raise click.UsageError("--split-index needs --filtered", ctx)
    index = read_split_index(split_index) if split_index else None
    raw = read_raw(MATHQA, source)
    with Bar("converting MathQA", "rows", quiet=ctx.obj["quiet"]) as bar:
        conversion = convert_mathqa(raw, progress=bar.show)
    if filtered:
        with Bar("finding near-copies", "questions", quiet=ctx.obj["quiet"]) as bar:
            conversion = filter_mathqa(conversion, index, progress=bar.show)
    _finish(conversion, out, rejects, as_json)


@command.command()
@click.option("--train", type=click.IntRange(min=0), default=600, show_default=True)
@click.option("--dev", type=click.IntRange(min=0), default=200, show_default=True)
@click.option("--test", type=click.IntRange(min=0), default=200, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed, the same bytes.")
@click.option(
    "--difficulty", type=click.Choice(["easy", "medium", "hard", "mixed"]), default="mixed", show_default=True
)
@click.option(
    "--holdout-situations",
    default="",
    metavar="NAMES|NUMBER",
    help="Situations that only the test split has, and nothing else in it: names with commas, or how many.",
)
@OUT
@AS_JSON
def storyproblems(
    train: int,
    dev: int,
    test: int,
    seed: int,
    difficulty: Level,
    holdout_situations: str,
    out: Path,
    as_json: bool,
) -> None:
    """Word problems from a built-in generator: no downloads, many solution paths each.

    \b
    Examples:
      partway data storyproblems --train 600 --dev 200 --test 200 --seed 0 --out data/stories
      partway data storyproblems --difficulty hard --holdout-situations 5 --out data/hard
    """
    from partway.datasets import generate_splits

    names = [name.strip() for name in holdout_situations.split(",") if name.strip()]
    # A single number says how many; anything else is names.
    held_out = int(names[0]) if len(names) == 1 and names[0].isdecimal() else names
    conversion = generate_splits(
        train, dev, test, seed=seed, difficulty=difficulty, holdout_situations=held_out
    )
    _finish(conversion, out, None, as_json)


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--answer-variable", default="answer", show_default=True, help="The variable that ends a solution."
)
@click.option(
    "--checker", default="default", metavar="NAME", help="What makes an answer right; MBPP needs: tests."
)
@COLUMNS
@AS_JSON
@click.pass_context
def check(
    ctx: click.Context, file: Path, answer_variable: str, checker: str, columns: str | None, as_json: bool
) -> None:
    """Validate a file of problems, or a data set of the Hub, and report everything wrong with it.

    Reads JSONL, JSON, CSV, TSV, Parquet and XML in the layouts of docs/data.md: question/answer, messages,
    prompt/completion, GSM8K, MATH, MBPP, HumanEval, SVAMP, ASDiv, GSM-Hard, verl, open-instruct. Every
    reference is run and must give the answer. Exits with 1 if any row is bad.

    \b
    Examples:
      partway data check my_problems.jsonl
      partway data check rows.tsv --columns question=prompt,answer=target
      partway data check mbpp.jsonl --checker tests
      partway data check train.parquet --json
    """
    from partway.datasets import check_problems
    from partway.datasets.columns import parse_columns, without_references
    from partway.datasets.spellings import numbers_left_text, without_number
    from partway.execution.programs import programs_of

    programs = programs_of({"answer_variable": answer_variable, "checker": checker})
    named = parse_columns(columns) if columns else None
    checked = check_problems(file, programs=programs, columns=named)
    remarks = [tell(checked.problems) for tell in (without_references, without_number) if checked.problems]
    for remark in filter(None, [] if ctx.obj["quiet"] else remarks):
        click.echo(f"partway: {file}: {remark}", err=True)
    with_reference = sum(problem.reference is not None for problem in checked.problems)
    if as_json:
        names = ("line", "item", "field", "reason")
        bad_rows = [{name: getattr(row, name) for name in names} for row in checked.bad_rows]
        counts = {
            "problems": len(checked.problems),
            "with_reference": with_reference,
            "numbers_left_text": len(numbers_left_text(checked.problems)),
        }
        click.echo(json.dumps({"file": str(file), **counts, "bad_rows": bad_rows}, ensure_ascii=False))
    else:
        for bad_row in checked.bad_rows:
            click.echo(bad_row)
    if checked.bad_rows:
        # A row may have several faults; an item is a row of a file that has no lines.
        rows = len({(row.line, row.item) for row in checked.bad_rows})
        raise ProblemError(f"{file}: {rows:,} bad rows beside {len(checked.problems):,} good ones")
    if not as_json:
        noun = "problem" if len(checked.problems) == 1 else "problems"
        click.echo(f"{file}: {len(checked.problems):,} {noun}, {with_reference:,} of them with a reference")


def _finish(conversion: Conversion, out: Path, rejects: Path | None, as_json: bool) -> None:
    """Write the files, then say what is in them."""
    from partway.cli.conversion_tables import counts, show_conversion
    from partway.datasets import write_problems
    from partway.files import atomic_writer

    for split, problems in conversion.splits.items():
        write_problems(out / f"{split}.jsonl", problems)
    if rejects:
        with atomic_writer(rejects) as stream:
            for reject in conversion.rejects:
                stream.write(json.dumps(asdict(reject), ensure_ascii=False) + "\n")
    if as_json:
        click.echo(json.dumps({"out": str(out), **counts(conversion)}, ensure_ascii=False))
    else:
        show_conversion(conversion, out)
