"""`partway data sql`: text-to-SQL data to files of problems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from partway.cli.options import AS_JSON, declared
from partway.data.commands import OUT, REJECTS, finish, source

if TYPE_CHECKING:
    from partway.sql.text2sql import Split


@click.command()
@source(type=click.Path(path_type=Path, exists=True, file_okay=False), required=True)
@OUT
@declared(
    "--split",
    type=click.Choice(["query", "question"]),
    default="query",
    show_default=True,
    help="GeoQuery: test on unseen queries or on unseen questions.",
)
@REJECTS
@AS_JSON
@click.pass_context
def sql(
    ctx: click.Context, source: Path, out: Path, split: Split, rejects: Path | None, as_json: bool
) -> None:
    """Make problems of GeoQuery, Spider or BIRD: queries as steps, each with its database.

    The source is the folder of GeoQuery (text2sql-data), Spider or BIRD, with its databases. Problems name
    their database by its path, so leave it where it is or set `database`.

    \b
    Examples:
      partway data sql --source downloads/geoquery --out data/geoquery
      partway data sql --source downloads/spider --out spider --rejects bad.jsonl
    """
    from partway.cli.progress import Bar
    from partway.sql.text2sql import convert_text2sql

    with Bar("converting text-to-SQL", "rows", quiet=ctx.obj["quiet"]) as bar:
        conversion = convert_text2sql(source, split, progress=bar.show)
    finish(conversion, out, rejects, as_json, "sql")
