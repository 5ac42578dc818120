"""The options of a command, each declared once: as a typed field of a dataclass, in the order of `--help`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import field, fields
from functools import wraps
from typing import Any, TypeVar, cast

import click

from partway.errors import ConfigError
from partway.registry import code_refused

Command = TypeVar("Command", bound=Callable[..., Any])

TOP_P = click.option(
    "--top-p", default=1.0, show_default=True, help="Draw from the likeliest tokens of this share."
)
TOP_K = click.option("--top-k", default=0, show_default=True, help="Draw from so many tokens; 0: from all.")
LENGTH = click.option(
    "--max-completion-length", default=256, show_default=True, help="Longest sample, in tokens."
)
SEED = click.option("--seed", default=0, show_default=True, help="The same seed gives the same samples.")
ANSWER_VARIABLE = click.option(
    "--answer-variable", help="What ends a solution.  [default: the run's, or answer]"
)
LANGUAGE = click.option(
    "--language",
    "language_name",
    metavar="NAME",
    help="What it is written in.  [default: the run's, or python]",
)
CHAT_TEMPLATE = click.option(
    "--chat-template",
    type=click.Choice(["auto", "none"]),
    default="auto",
    help="none: ask a chat model plainly, with `# question`.",
)
COLUMNS = click.option(
    "--columns",
    metavar="NAME=COLUMN,...",
    help="Where the file has question, answer, solution, context, id.",
)
DEVICE = click.option("--device", metavar="NAME", help="Where the model runs: cpu, cuda, mps ...")


def check_device(name: str | None) -> None:
    """Refuses a device that is not here, before a model is loaded for it."""
    import torch

    try:
        torch.empty(0, device=name)  # takes no memory, but needs the driver
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"--device is {name!r}, which cannot be used ({reason}); try cpu") from error


def reads_runs(command: Command) -> Command:
    """Gives a command `--trust`: without it, code that the settings of a run name is not imported."""

    @click.option("--trust", is_flag=True, help="Import and run code that the settings of the run name.")
    @wraps(command)
    def careful(*arguments: Any, trust: bool, **options: Any) -> Any:
        with nullcontext() if trust else code_refused(lambda said: click.echo(f"partway: {said}", err=True)):
            return command(*arguments, **options)

    return cast(Command, careful)


def given(declaration: Callable[[Any], Any]) -> Any:
    """A field whose value the command line gives, as click's `declaration` of an option or argument says."""
    return field(metadata={"declaration": declaration})


def option(*names: str, **settings: Any) -> Any:
    """A field whose value is that of an option, declared as click does it."""
    return given(click.option(*names, **settings))


def takes(options: type) -> Callable[[Command], Command]:
    """Gives a command what the fields of `options` declare."""

    def declared(command: Command) -> Command:
        for one in reversed(fields(options)):  # click shows the last one applied first
            command = one.metadata["declaration"](command)
        return command

    return declared
