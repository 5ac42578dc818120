"""A registry of what folders around the method add to it: commands, languages, rules, objectives, engines.

A folder that adds something says so in a module `parts`: tables of `Part`, by kind and name. Packages name
that module by an entry point of the group `partway.parts`, those of this repository in pyproject.toml. The
method asks for a kind and a name and never knows who answers, so a folder can be deleted: its entry point
then leads nowhere, and asking for what it held gives an error of one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Literal

from partway.errors import CodeError, ConfigError, one_line, suggestion

_refusal: Callable[[str], None] | None = None  # is told of code that is not imported; None: all code is


def imported(path: str, key: str) -> Any:
    """What the setting `key` points at with `path`, which is `module:name`.

    >>> imported("math:pi", "objective")
    3.141592653589793
    >>> imported("math:pie", "objective")
    Traceback (most recent call last):
    partway.errors.CodeError: objective is 'math:pie', but math has no 'pie'; did you mean 'pi'?
    """
    module_name, _, name = path.partition(":")
    # A name may be nested: `package.module:Class.method`.
    if not all(part.isidentifier() for part in (*module_name.split("."), *name.split("."))):
        raise ConfigError(f"{key} is {path!r}, expected package.module:name")
    found = _module(module_name, f"{key} is {path!r}")
    for part in name.split("."):
        if not hasattr(found, part):
            hint = suggestion(part, dir(found)) or f"; expected a name that {module_name} defines"
            raise CodeError(f"{key} is {path!r}, but {module_name} has no {part!r}{hint}")
        found = getattr(found, part)
    return found


@contextmanager
def code_refused(say: Callable[[str], None]) -> Iterator[None]:
    """While open, no thread imports the code of languages and checkers; `say` is told once of each."""
    global _refusal
    before, told = _refusal, set[str]()

    def refuse(said: str) -> None:
        if said not in told:
            told.add(said)
            say(f"{said}, code that the run names: not run, so verdicts are as recorded; --trust runs it")

    _refusal = refuse
    try:
        yield
    finally:
        _refusal = before


def is_refused(path: str, key: str) -> bool:
    """Whether what the setting `key` points at with `path` must not be imported; then the user is told."""
    if _refusal is None:
        return False
    _refusal(f"{key} is {path!r}")
    return True


def refused(path: str, key: str) -> CodeError:
    """The error for what cannot be done without code that was refused."""
    return CodeError(f"this needs code that the run names ({key} is {path!r}); --trust runs it")


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__`: each name is imported from the module that has it when it is first used."""

    def found(name: str) -> Any:
        if name in homes:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return found


def import_path(thing: Any) -> str:
    """Where something is, so that `imported` finds it again.

    >>> import_path(ConfigError)
    'partway.errors:ConfigError'
    """
    return f"{thing.__module__}:{thing.__qualname__}"


def _module(name: str, said: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        # A module that is there may import one that is not: the message names the missing one.
        hint = "install it, or put its folder in PYTHONPATH"
        raise CodeError(f"{said}, but there is no module {error.name}; {hint}") from error
    except Exception as error:  # a user's module can fail in any way
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise CodeError(f"{said}, but importing {name} fails ({reason})") from error


GROUP = "partway.parts"
Kind = Literal[
    "commands", "languages", "rooms", "rules", "objectives", "engines", "metrics", "layouts", "problems",
    "views", "checkups", "callbacks", "explorers", "replays", "hub", "samplers", "models", "choices",
    "adapters", "checks", "learning", "model files",
]  # fmt: skip


@dataclass(frozen=True)
class Part:
    """Something that a folder adds: where it is, as `package.module:name`, and what it is in a sentence.

    A command is listed in the `section` of `partway --help`.
    """

    where: str
    summary: str = ""
    section: str = "More"

    def load(self) -> Any:
        """The thing itself; what it needs is imported now."""
        return imported(self.where, "a part")


Parts = Mapping[Kind, Mapping[str, Part]]


def parts(kind: Kind) -> dict[str, Part]:
    """Everything of a kind that some folder adds, by name."""
    present, _ = _found()
    return {name: part for tables in present for name, part in tables.get(kind, {}).items()}


def missing_parts() -> str:
    """The end of an error message: which folders were deleted."""
    gone = _found()[1]  # entry points that lead nowhere
    return f"; not here: {', '.join(gone)}" if gone else ""


def part(kind: Kind, name: str, *, built_in: Mapping[str, Any] | None = None) -> Any:
    """The thing of this kind and name, from the method's own or from what some folder adds."""
    own = built_in or {}
    if name in own:
        return own[name]
    added = parts(kind)
    if name in added:
        return added[name].load()
    known, told = [*own, *added], f"this needs the part {name!r} of the {kind}, which no folder adds"
    if kind in ("languages", "objectives", "rules"):  # names that users write
        told = f"{name!r} is not one of the {kind}: {', '.join(known) or 'none'}{suggestion(name, known)}"
    raise ConfigError(told + missing_parts())


def view(of: str, thing: object) -> str | None:
    """A thing as HTML for a notebook, None where no folder has a view of it: then its plain text is shown."""
    found = parts("views").get(of)
    html: str | None = None if found is None else found.load()(thing)
    return html


@cache
def _found() -> tuple[tuple[Parts, ...], tuple[str, ...]]:
    """The tables of all parts, and the names of those whose module is not there."""
    present: list[Parts] = []
    gone: list[str] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            present.append(import_module(entry.value).PARTS)
        except ModuleNotFoundError as error:
            lacking = error.name or ""
            if not entry.value.startswith(lacking) and not lacking.startswith("partway."):
                raise  # the folder and those it needs are there, and something else is not
            gone.append(entry.name)
    return tuple(present), tuple(gone)
