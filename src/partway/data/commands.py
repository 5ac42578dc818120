"""`partway data`: makes files of problems from sources that other folders add, and checks such files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from partway.cli import LazyGroup, commands
from partway.cli.options import (
    AS_JSON,
    COLUMNS,
    Callback,
    as_spoken,
    counted,
    declared,
    out,
    patience,
    say_next,
    speaks,
    spoken,
)
from partway.errors import ProblemError

if TYPE_CHECKING:
    from partway.data.conversion import Conversion

TRAIN = "partway train --model_name_or_path MODEL --output_dir run"
OUT = out(type=click.Path(path_type=Path, file_okay=False), required=True)


def source(told: str = "", **settings: Any) -> Callable[[Callback], Callback]:
    """`--source`, a directory; `told` is what is meant without it."""
    default = f"  [default: {told}]" if told else ""
    return declared("--source", help=f"The directory of the raw files.{default}", **settings)


SOURCE = source("they come from the Hugging Face Hub", type=click.Path(path_type=Path))
REJECTS = declared(
    "--rejects",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the rows without a reference, with reasons, as JSONL.",
)


@click.group(cls=LazyGroup, parts=partial(commands, "data"), usual="check")
def command() -> None:
    """Make files of problems, or check your own: each problem has a question, an answer and, if there is one,
    a reference solution that runs.

    \b
    Examples:
      partway data storyproblems --train 600 --dev 200 --test 200 --out stories
      partway data gsm8k --source downloads/gsm8k --out data/gsm8k
      partway data check my_problems.jsonl
    """


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@speaks
@COLUMNS
@AS_JSON
@click.pass_context
def check(ctx: click.Context, file: Path, columns: str | None, as_json: bool) -> None:
    """Check a file of problems, or a data set of the Hub, and report everything that is wrong with it.

    Reads JSONL, JSON, CSV, TSV, Parquet and XML in the layouts of docs/first_run.md: question/answer,
    messages, prompt/completion, GSM8K, MATH, MBPP, HumanEval, SVAMP, ASDiv, GSM-Hard, verl,
    open-instruct. Every reference is run and must give the answer. Exits with 1 if any row is bad.

    \b
    Examples:
      partway data check my_problems.jsonl
      partway data check rows.tsv --columns question=prompt,answer=target
      partway data check mbpp.jsonl --language python-tests
      partway data check train.parquet --json
    """
    from partway.cli.train import good_for
    from partway.data.problem_files import check_problems
    from partway.data.remarks import numbers_left_text
    from partway.data.remarks import remarks as remarks_on

    with patience(f"reading {file}, running its references"):
        checked = check_problems(file, language=spoken(), columns=columns)
    remarks = remarks_on(checked.problems)
    if systems := sum("system" in problem.meta for problem in checked.problems):
        remarks.append(f"{counted(systems, 'system turn')} not asked, but kept in meta; see system_prompt")
    for remark in [] if ctx.obj["quiet"] else remarks:
        click.echo(f"partway: {file}: {remark}", err=True)
    with_reference = sum(problem.reference is not None for problem in checked.problems)
    if as_json:
        names = ("line", "field", "reason")
        bad_rows = [{name: getattr(row, name) for name in names} for row in checked.bad_rows]
        counts = {
            "problems": len(checked.problems),
            "with_reference": with_reference,
            "numbers_left_text": len(numbers_left_text(checked.problems)),
        }
        click.echo(json.dumps({"file": str(file), **counts, "bad_rows": bad_rows}, ensure_ascii=False))
    else:
        alike = Counter((row.field, row.reason) for row in checked.bad_rows)
        for bad_row in checked.bad_rows:
            count = alike.pop(
                (bad_row.field, bad_row.reason), 0
            )  # what is wrong is told once, with its first row
            if count:
                click.echo(f"{bad_row} (and {counted(count - 1, 'more row')})" if count > 1 else bad_row)
    if checked.bad_rows:
        rows = len({row.line for row in checked.bad_rows})  # a row may have several faults
        raise ProblemError(f"{file}: {counted(rows, 'bad row')} beside {len(checked.problems):,} good")
    if not as_json:
        click.echo(f"{file}: {good_for(checked.problems)}")
        named = f" --columns {columns}" if columns else ""
        say_next(f"{TRAIN} --train_file {file}{named}{as_spoken()}")


def finish(
    conversion: Conversion, out: Path, rejects: Path | None, as_json: bool, language: str = ""
) -> None:
    """Write the files of a conversion, then say what is in them."""
    from partway.data.conversion import counts, show_conversion
    from partway.files import atomic_writer
    from partway.problems import write_problems

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
        files = " ".join(
            f"--{key} {out / split}.jsonl"
            for split, key in (("train", "train_file"), ("dev", "eval_file"))
            if conversion.splits.get(split)
        )
        spoken = f" --language {language}" if language else ""
        say_next(f"{TRAIN} {files}{spoken}")
