"""The options of a command, each declared once: as a typed field of a dataclass, in the order of `--help`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import field, fields
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from partway import registry
from partway.config_files import checked
from partway.errors import ConfigError
from partway.language import Language
from partway.language.language import LANGUAGES, language_class, schema_of
from partway.registry import code_refused
from partway.runs import Run, language_for

Command = TypeVar("Command", bound=Callable[..., Any])

SPOKEN = "partway.spoken"  # where a command line's settings of the language are kept

TOP_P = click.option(
    "--top-p", default=1.0, show_default=True, help="Draw from the likeliest tokens of this share."
)
TOP_K = click.option("--top-k", default=0, show_default=True, help="Draw from so many tokens; 0: from all.")
LENGTH = click.option(
    "--max-completion-length", type=int, help="Longest sample, in tokens.  [default: the run's, or 256]"
)
SEED = click.option("--seed", default=0, show_default=True, help="The same seed gives the same samples.")
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


def speaks(command: Command) -> Command:
    """Gives a command `--language` and the settings of languages, as `partway train` takes them."""
    settings: dict[str, str] = {}
    for name in LANGUAGES | registry.parts("languages"):
        schema = schema_of(language_class(name))
        settings |= {f.name: f.metadata.get("help", "") for f in fields(schema) if f.name not in settings}
    command = _setting("language_args", "Settings of a language of your own: KEY=VALUE,...")(command)
    for name, text in reversed(settings.items()):
        command = _setting(name, text)(command)
    return _setting("language", "What programs are written in.  [default: the run's, or python]")(command)


def _setting(name: str, text: str) -> Callable[[Command], Command]:
    def keep(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            ctx.meta.setdefault(SPOKEN, {})[name] = value

    dashed = f"--{name.replace('_', '-')}"
    return click.option(dashed, name, callback=keep, expose_value=False, metavar="VALUE", help=text)


def spoken(model: str | None = None) -> Language:
    """The language that the command line of a command that `speaks` asks for; the rest is the run's."""
    said = dict(click.get_current_context().meta.get(SPOKEN, {}))
    name = said.pop("language", None)
    if "language_args" in said:
        said |= parse_pairs(said.pop("language_args"), "--language-args")
    run = Run(Path(model or ""))
    own = run.config.get("language") if model and run.is_started else None
    return language_for(model, name, **checked({}, schema_of(language_class(name or own or "python")), said))


def parse_pairs(text: str, option: str) -> dict[str, str]:
    """What `KEY=VALUE,...` says."""
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(key.strip() and equals for key, equals, _ in pairs):
        raise ConfigError(f"{option} is {text!r}, expected KEY=VALUE,...")
    return {key.strip(): value.strip() for key, _, value in pairs}


def length_for(model: str | None, given: int | None) -> int:
    """The longest sample: given, or that of the model's run."""
    if given is not None:
        return given
    run = Run(Path(model or ""))
    return int((run.config if model and run.is_started else {}).get("max_completion_length") or 256)


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
