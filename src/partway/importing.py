"""Things named by where they are, `package.module:name`: how a setting points at a user's own code."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from partway.errors import ConfigError, suggestion


def imported(path: str, key: str) -> Any:
    """What the setting `key` points at with `path`, which is `module:name`.

    >>> imported("math:pi", "objective")
    3.141592653589793
    >>> imported("math:pie", "objective")
    Traceback (most recent call last):
    partway.errors.ConfigError: objective is 'math:pie', but math has no 'pie'; did you mean 'pi'?
    """
    module_name, _, name = path.partition(":")
    # A name may be nested: `package.module:Class.method`.
    if not all(part.isidentifier() for part in (*module_name.split("."), *name.split("."))):
        raise ConfigError(f"{key} is {path!r}, expected package.module:name")
    found = _module(module_name, f"{key} is {path!r}")
    for part in name.split("."):
        if not hasattr(found, part):
            hint = suggestion(part, dir(found)) or f"; expected a name that {module_name} defines"
            raise ConfigError(f"{key} is {path!r}, but {module_name} has no {part!r}{hint}")
        found = getattr(found, part)
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
        raise ConfigError(f"{said}, but there is no module {error.name}; {hint}") from error
    except Exception as error:  # a user's module can fail in any way
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ConfigError(f"{said}, but importing {name} fails ({reason})") from error
