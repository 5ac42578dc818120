"""`partway explore`: a local page to look at problems, solutions and their states."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from partway.cli.options import declared, reads_runs

if TYPE_CHECKING:
    from runexplorer.explorer import Explorer


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("other_run", required=False, type=click.Path(path_type=Path))
@declared(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="The port to listen on.  [default: any that is free]",
)
@declared(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on; other machines that can reach it need a token.",
)
@declared("--open/--no-open", "opens", default=None, help="Open a browser.  [default: if there is a display]")
@declared(
    "--export",
    "folder",
    type=click.Path(path_type=Path),
    help="Write a copy to this folder instead, which needs no server: open its index.html.",
)
@reads_runs
@click.pass_context
def explore(
    ctx: click.Context,
    run: Path,
    other_run: Path | None,
    port: int,
    host: str,
    opens: bool | None,
    folder: Path | None,
) -> None:
    """Look at the problems of RUN: their solutions side by side with states, and the model's samples.

    With OTHER_RUN, you can find problems that only one of the two solves. A run that is still training is
    shown as far as it has come. The page is served to this machine only; Ctrl-C ends it.

    \b
    Examples:
      partway explore runs/gsm8k
      partway explore runs/fcs-pcs runs/mle
      partway explore runs/gsm8k --port 8000 --no-open
      partway explore runs/gsm8k --export page
    """
    from partway.runs import Run
    from runexplorer.explorer import Explorer

    explorer = Explorer(Run.at(run), Run.at(other_run) if other_run is not None else None)
    if folder is not None:
        _export(explorer, folder, quiet=ctx.obj["quiet"])
        return
    _serve(explorer, host, port, has_display() if opens is None else opens, quiet=ctx.obj["quiet"])


def _export(explorer: Explorer, folder: Path, *, quiet: bool) -> None:
    from partway.cli.progress import Bar
    from runexplorer.export import export

    with Bar("exporting", "problems", quiet=quiet) as bar:
        export(explorer, folder, bar.show)
    click.echo(folder / "index.html")


def _serve(explorer: Explorer, host: str, port: int, opens: bool, *, quiet: bool) -> None:
    from partway.errors import ConfigError

    try:
        from runexplorer.guard import Door
        from runexplorer.server import serve
    except ModuleNotFoundError as error:
        ours = ("partway", "runexplorer", "runreports")
        if (error.name or "").startswith(ours):  # a mistake of ours, which no installation mends
            raise
        raise ConfigError(
            f"the page needs {error.name}, which is not installed; try pip install 'partway[explore]',"
            " or --export DIR for a copy that needs no server"
        ) from None

    def on_ready(door: Door) -> None:
        click.echo(door.address)
        if not quiet:
            click.echo("Ctrl-C ends it.", err=True)
        if opens:
            click.launch(door.address)

    if not quiet:
        click.echo(f"reading {explorer.reader.run.directory}", err=True)
    explorer.check()
    serve(explorer, host, port, on_ready)


def has_display() -> bool:
    """Whether a browser opened here would be seen."""
    if os.environ.get("SSH_CONNECTION"):  # it would open where nobody sits
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
