"""Options of commands: those that several commands take, and options as typed fields of a dataclass."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager, nullcontext
from dataclasses import field, fields
from functools import partial, wraps
from threading import Timer
from typing import Any, TypeVar, cast

import click

from partway.cli.training_keys import language_schemas
from partway.errors import ConfigError
from partway.language import Language
from partway.language.named import language_class, name_of, schema_of
from partway.registry import code_refused
from partway.runs import Run, language_for
from partway.settings import checked

Callback = TypeVar("Callback", bound=Callable[..., Any])

SPOKEN = "partway.spoken"  # where a command line's settings of the language are kept


class Option(click.Option):
    """An option that may say which other one it `needs`, and which ones it does `not` go `with`."""

    def __init__(self, *args: Any, needs: str = "", not_with: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.needs, self.not_with = needs, not_with

    def handle_parse_result(self, ctx: click.Context, opts: Any, args: list[str]) -> tuple[Any, list[str]]:
        """Refuse the option where it could have no effect."""
        given = {name for name, value in opts.items() if isinstance(value, str | bool | tuple)}
        if self.name in given and not ctx.resilient_parsing:
            others = {one.name: one for one in ctx.command.params}
            if self.needs and self.needs not in given:
                raise click.UsageError(f"{_spelled(self)} needs {_spelled(others[self.needs])}", ctx)
            for name in given.intersection(self.not_with):
                both = f"{_spelled(self)} and {_spelled(others[name])}"
                raise click.UsageError(f"{both} do not go together; leave one out", ctx)
        return super().handle_parse_result(ctx, opts, args)


def _spelled(parameter: click.Parameter) -> str:
    name = max(parameter.opts, key=len)
    return name if isinstance(parameter, click.Option) else name.upper()


declared = partial(click.option, cls=Option)

RUN = click.argument("run", metavar="RUN")
AS_JSON = declared("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
PROBLEMS = declared("--problems", metavar="FILE", help="The file of problems.  [default: those of the run]")
TOP_P = declared(
    "--top-p",
    default=1.0,
    show_default=True,
    help="Draw from the likeliest tokens that together have this probability.",
)
TOP_K = declared(
    "--top-k", default=0, show_default=True, help="Draw from this many likeliest tokens; 0: from all."
)
TEMPERATURE = declared(
    "--temperature",
    default=0.8,
    show_default=True,
    help="How much samples vary; at 0 every one takes the likeliest tokens.",
)
LENGTH = declared(
    "--max-completion-length", type=int, help="The longest sample, in tokens.  [default: the run's, or 256]"
)
SEED = declared("--seed", default=0, show_default=True, help="The same seed gives the same samples.")
CHAT_TEMPLATE = declared(
    "--chat-template",
    type=click.Choice(["auto", "none"]),
    default="auto",
    help="With none, a chat model is asked with `# question`.",
)
COLUMNS = declared(
    "--columns",
    metavar="NAME=COLUMN,...",
    help="Which columns hold question, answer, solution, context, id.",
)
DEVICE = declared(
    "--device", metavar="NAME", not_with=["engine"], help="Where the model runs: cpu, cuda, mps ..."
)
ENGINE = declared(
    "--engine", metavar="URL,...", help="Addresses of inference servers, such as http://localhost:8000/v1."
)


def check_device(name: str | None) -> None:
    """Refuses a device that is not here, before a model is loaded for it."""
    import torch

    try:
        torch.empty(0, device=name)  # takes no memory, but needs the driver
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"--device is {name!r}, which cannot be used ({reason}); try cpu") from error


def out(told: str = "", **settings: Any) -> Callable[[Callback], Callback]:
    """`--out`, a directory; `told` is what its default is, where that depends."""
    default = f"  [default: {told}]" if told else ""
    return declared("--out", metavar="DIR", help=f"The directory to write to.{default}", **settings)


def samples(default: int | None, *names: str, told: str = "") -> Callable[[Callback], Callback]:
    """`--samples`, how many of each problem; an option without a default tells it."""
    settings: dict[str, Any] = {
        "type": click.IntRange(1),
        "metavar": "N",
        "show_default": default is not None,
    }
    return declared("--samples", *names, default=default, help=f"Samples of each problem.{told}", **settings)


def reads_runs(command: Callback) -> Callback:
    """Gives a command `--trust`: without it, code that the settings of a run name is not imported."""

    @declared("--trust", is_flag=True, help="Import and run code that the settings of the run name.")
    @wraps(command)
    def careful(*arguments: Any, trust: bool, **options: Any) -> Any:
        with nullcontext() if trust else code_refused(lambda said: click.echo(f"partway: {said}", err=True)):
            return command(*arguments, **options)

    return cast(Callback, careful)


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "step"), counted(2_000, "step")
    ('1 step', '2,000 steps')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@contextmanager
def patience(doing: str) -> Iterator[None]:
    """Say what a command is doing, if it takes more than two seconds."""
    timer = Timer(2.0, logging.getLogger("partway").info, [doing])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def say_next(*commands: str) -> None:
    """Name what a user sensibly does next, unless only results are wanted."""
    if commands:
        logging.getLogger("partway").info("next: %s", ", or ".join(commands))


def speaks(command: Callback) -> Callback:
    """Gives a command `--language` and the settings of languages, as `partway train` takes them."""
    settings: dict[str, str] = {}
    for schema in language_schemas():
        settings |= {f.name: f.metadata.get("help", "") for f in fields(schema) if f.name not in settings}
    command = _setting("language_args", "Settings of a language of your own: KEY=VALUE,...")(command)
    for name, text in reversed(settings.items()):
        command = _setting(name, text)(command)
    return _setting(
        "language",
        "The language of programs: python, python-written, python-tests ...  [default: the run's, or python]",
    )(command)


def _setting(name: str, text: str) -> Callable[[Callback], Callback]:
    def keep(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            ctx.meta.setdefault(SPOKEN, {})[name] = value

    dashed = f"--{name.replace('_', '-')}"
    return declared(dashed, name, callback=keep, expose_value=False, metavar="VALUE", help=text)


def spoken(model: str | None = None) -> Language:
    """The language that the command line of a command that `speaks` asks for; the rest is the run's."""
    said = dict(click.get_current_context().meta.get(SPOKEN, {}))
    name = said.pop("language", None)
    if "language_args" in said:
        said |= parse_pairs(said.pop("language_args"), "--language-args")
    run = Run.around(model)
    own = None if run is None else run.config.get("language")
    schema = check_spoken(said.keys(), name or own or "python")
    return language_for(model, name, **checked({}, schema, said))


def check_spoken(keys: Set[str], language: str) -> type:
    """The settings of a language; a key that is one of another language only is refused."""
    schema: type = schema_of(language_class(language))
    for key in keys - {one.name for one in fields(schema)}:
        if others := [name_of(one) for one in language_schemas() if key in {f.name for f in fields(one)}]:
            told = f"{key} is a setting of {' and '.join(others)}, not of {language}"
            raise ConfigError(f"{told}; say --language {others[0]}, or leave it out")
    return schema


def as_spoken() -> str:
    """The options of a command that `speaks`, as another command takes them; empty if none was given."""
    said: dict[str, str] = click.get_current_context().meta.get(SPOKEN, {})
    return "".join(f" --{name} {shlex.quote(value)}" for name, value in said.items())


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
    run = Run.around(model)
    return int(({} if run is None else run.config).get("max_completion_length") or 256)


def given(declaration: Callable[[Any], Any]) -> Any:
    """A field whose value the command line gives, as click's `declaration` of an option or argument says."""
    return field(metadata={"declaration": declaration})


def option(*names: str, **settings: Any) -> Any:
    """A field whose value is that of an option, declared as click does it."""
    return given(declared(*names, **settings))


def takes(options: type) -> Callable[[Callback], Callback]:
    """Gives a command what the fields of `options` declare."""

    def declared_on(command: Callback) -> Callback:
        for one in reversed(fields(options)):  # click shows the last one applied first
            command = one.metadata["declaration"](command)
        return command

    return declared_on
