"""The command line: a thin, lazily imported layer over the library.

Each command of the method lives in a module of its own beside this one; the folders around the method add
theirs (`registry`). A command is imported only when called, so that `partway --help` is instant. Exit codes:
0 fine, 1 a user's mistake, 2 usage, 130 interrupted, 143 terminated.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import click

from partway import registry
from partway.cli.interruptions import INTERRUPTED, interruptions_handled
from partway.errors import PartwayError, suggestion
from partway.registry import Part

ROOM = (
    "to need less: a smaller tokens_per_pass, gradient_checkpointing: true, use_peft: true; while sampling, "
    "a smaller sampling_memory (docs/gpus.md)"
)
FIRST = ("demo", "data", "train", "evaluate")  # to begin with, in this order
SECTIONS = ("To begin with", "Look at a run", "Ask a model, run a program", "Compare and share")
PROGRAM = SECTIONS[2]
COMMANDS = {
    "train": Part("partway.cli.train:command", "Fine-tune a model on problems."),
    "sample": Part("partway.cli.sample:command", "Let a model write solutions to questions.", PROGRAM),
    "trace": Part("partway.cli.trace:command", "Run a program step by step and show its states.", PROGRAM),
    "doctor": Part("partway.cli.doctor:command", "Show what is installed and what is missing."),
}


def commands(group: str = "") -> dict[str, Part]:
    """Those to begin with, then the others of the method and of the folders around it; or those of one group.

    What belongs to a group has a name of two words: `data check`.
    """
    everything = COMMANDS | registry.parts("commands")
    prefix = f"{group} " if group else ""
    inside = {name.removeprefix(prefix): part for name, part in everything.items() if name.startswith(prefix)}
    first = {name: replace(inside[name], section=SECTIONS[0]) for name in FIRST if name in inside}
    return {name: part for name, part in (first | inside | first).items() if " " not in name}


class LazyGroup(click.Group):
    """A group whose commands are imported on first use; `parts` says which there are.

    The `usual` command is meant where a file or directory stands in a command's place.
    """

    def __init__(
        self, *args: Any, parts: Callable[[], Mapping[str, Part]], usual: str = "", **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.parts = parts
        self.usual = usual

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest a command for a name that is not known."""
        name, names = args[0], self.list_commands(ctx)
        if name not in names and not name.startswith("-"):
            if self.usual and Path(name).exists():
                return super().resolve_command(ctx, [self.usual, *args])
            hint = suggestion(name, names) or f"; try one of: {', '.join(names)}"
            raise click.UsageError(f"no command '{name}'{hint}{registry.missing_parts()}", ctx)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.parts())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        part = self.parts().get(name)
        command: click.Command | None = None if part is None else part.load()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, part.summary) for name, part in self.parts().items()])


class App(LazyGroup):
    """The outermost group: its long switches may also stand after the command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Those to begin with, then the others by section."""
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in SECTIONS}
        for name, part in self.parts().items():
            sections.setdefault(part.section, []).append((name, part.summary))
        width, filled = max(map(len, self.parts())), {title: rows for title, rows in sections.items() if rows}
        for title, rows in filled.items():
            with formatter.section(title if len(filled) > 1 else "Commands"):
                formatter.write_dl([(name.ljust(width), summary) for name, summary in rows])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Commands first: whoever asks for help looks for one."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # What stands after `--` is the command's own, whatever it looks like.
        end = args.index("--") if "--" in args else len(args)
        ours = [word for word in args[:end] if word in ("--debug", "--quiet", "--allow-weak-sandbox")]
        others = [word for word in args[:end] if word not in ours]
        return super().parse_args(ctx, [*ours, *others, *args[end:]])


@click.group(
    cls=App,
    parts=commands,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "token_normalize_func": lambda word: word.replace("_", "-"),  # --max_steps is --max-steps
    },
    epilog="Docs: README.md and docs/ in the repository. Completion in bash (or zsh, fish): "
    'eval "$(_PARTWAY_COMPLETE=bash_source partway)"',
)
@click.version_option(package_name="partway", message="partway %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option("-q", "--quiet", is_flag=True, help="Print results only: no progress, no remarks.")
@click.option(
    "--allow-weak-sandbox",
    is_flag=True,
    help="Run general programs even where the kernel cannot confine them: such a program could read, change "
    "or delete your files and run commands as you.",
)
@click.pass_context
def app(ctx: click.Context, debug: bool, quiet: bool, allow_weak_sandbox: bool) -> None:
    """Fine-tune language models on their own correct and partially-correct solutions.

    \b
    Examples:
      partway demo                                on built-in problems, in minutes
      partway data check problems.jsonl           your own: what they are good for
      partway train --train_file problems.jsonl --model_name_or_path MODEL
      partway evaluate run --problems test.jsonl  how many it solves
      partway report run                          one page with all of it
    """
    ctx.obj = {"debug": debug, "quiet": quiet}
    remarks = logging.getLogger("partway")
    remarks.handlers[:] = [] if quiet else [Remarks()]
    remarks.setLevel(logging.WARNING if quiet else logging.INFO)
    ctx.call_on_close(remarks.handlers.clear)  # whoever called this from Python has handlers of their own
    if allow_weak_sandbox:
        os.environ["PARTWAY_ALLOW_WEAK_SANDBOX"] = "1"  # processes started from this one ask for it, too


class Remarks(logging.Handler):
    """Says on standard error what is logged; of several processes, only the first says more than warnings."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno > logging.INFO or os.environ.get("RANK", "0") == "0":
            _say(record.getMessage())


def main() -> NoReturn:
    """`partway`, as the shell calls it."""
    run(app, "partway")


def run(commands: click.Group, name: str) -> NoReturn:
    """Run a command line and exit with its code; every error a user can cause is one line."""
    debug = "--debug" in sys.argv  # looked up here: reading the command line may be what fails
    try:
        with interruptions_handled():
            commands.main(standalone_mode=False, prog_name=name)
            sys.stdout.flush()  # so that a closed pipe is noticed while it can be handled
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else ""
        _say(f"error: {error.format_message()}" + (f" (see {where} --help)" if where else ""))
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        _say("interrupted")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # such as `| head`, which has what it wants
        # Python flushes once more at its end, and would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:  # the one place where nothing may get past
        if debug:
            raise
        _say(f"error: {_told(error)}")
        sys.exit(1)
    sys.exit(0)


def _told(error: Exception) -> str:
    """An error in words for the user; it is a bug of ours unless it is one of the expected kinds."""
    if isinstance(error, PartwayError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
    kind = type(error).__name__
    if kind == "OutOfMemoryError":  # torch's, which is not imported for its name
        return f"{str(error).split('. ')[0]}; {ROOM}"
    if (place := _place_outside(error)) is not None:
        return f"{place}: {kind}: {error}; this is not partway's code, --debug shows how it was called"
    if isinstance(error, ModuleNotFoundError):
        return f"there is no module {error.name}; install it, or put its folder in PYTHONPATH"
    return f"{kind}: {error}; this is a bug in partway, please report what --debug shows"


def _place_outside(error: Exception) -> str | None:
    """The line of a user's own module where an error arose: of a reward, an objective, a language."""
    libraries = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]), "<")
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own = [
        (code, line)
        for code, line in frames
        if not code.co_filename.startswith(libraries) and "-packages" not in code.co_filename
    ]
    return f"{own[-1][0].co_filename}:{own[-1][1]}, in {own[-1][0].co_name}" if own else None


def _say(line: str) -> None:
    # Messages of libraries may have several lines.
    one_line = re.sub(r"\s*\n\s*", " ", line.strip())
    print(f"partway: {one_line}", file=sys.stderr)
