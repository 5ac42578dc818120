"""Settings checked against a dataclass: every key is one of its fields, every value of that field's type.

transformers' HfArgumentParser does less: it takes "many" for a number of a file, suggests no key, and has no
place for a setting that is a text or a list.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, Union

from partway.errors import ConfigError, clipped, shown, suggestion
from partway.files import Unreadable, parse_yaml

Settings = dict[str, Any]

NEAR = 0.7  # how alike a key must be to what was written to be worth a question
LARGEST_INTEGER = 2**63  # what other programs and file formats hold


def checked(
    settings: Mapping[str, Any],
    schema: type,
    overrides: Mapping[str, str] | None = None,
    where: Callable[[str], str] = lambda key: "",
    nested: Mapping[str, type] | None = None,
) -> Settings:
    """`settings` with `overrides` on top, every key a field of `schema`, every value of that field's type.

    What is said of a mistake in `settings` begins with `where` its key was found. The fields of a `nested`
    schema may stand beside the others; they are gathered under its key.
    """
    schemas = {**(nested or {}), "": schema}  # last, so that its own fields win
    places = {name: (place, hint) for place, of in schemas.items() for name, hint in _hints(of).items()}
    found: dict[str, Settings] = {place: {} for place in schemas}
    names = sorted(places, key=lambda name: name not in schema.__annotations__)  # inherited ones last

    def put(key: str, value: Any, text: str | None = None) -> None:
        place, hint = places[known(key, names)]
        found[place][key] = coerce(key, value, hint, text)

    for key, value in settings.items():
        try:
            put(key, value)
        except ConfigError as error:
            raise ConfigError(f"{where(key)}{error}") from None
    for key, text in (overrides or {}).items():
        put(key, from_command_line(text), text)
    result = found.pop("")
    return result | {place: (result.get(place) or {}) | own for place, own in found.items() if own}


def _hints(schema: type) -> dict[str, Any]:
    """The types of the fields that can be set."""
    hints = typing.get_type_hints(schema)  # annotations are texts under `from __future__`
    return {field.name: hints[field.name] for field in dataclasses.fields(schema) if field.init}


def known(key: str, names: Sequence[str]) -> str:
    """`key`, if it is one of `names`."""
    if key in names:
        return key
    longer = sorted((n for n in names if f"_{key}_" in f"_{n}_"), key=lambda n: not n.startswith(key))
    near = suggestion(key, longer[:1], cutoff=0) or suggestion(key, names, cutoff=NEAR)
    raise ConfigError(f"unknown key '{clipped(key, 60)}'{near or '; docs/keys.md lists all keys'}")


def from_command_line(text: str) -> Any:
    """What `text` would be in a YAML file; `a,b` is a list."""
    if not text.strip():
        return text  # not YAML's null: `--key ""` is a text that is empty
    try:
        value = parse_yaml(text)
        if isinstance(value, str) and "," in value:
            return [parse_yaml(part) for part in value.split(",")]
    except Unreadable:
        return text
    return value


def coerce(key: str, value: Any, hint: Any, text: str | None = None) -> Any:
    """`value` as the type `hint` asks for; `text` is how the command line spelled it.

    >>> coerce("learning_rate", "1e-4", float)
    0.0001
    >>> coerce("max_steps", "many", int)
    Traceback (most recent call last):
    partway.errors.ConfigError: max_steps is 'many', expected int
    """
    # `--name 7` is read as a number; where only a text fits, the characters typed are meant, and where
    # only a list does, one item may stand alone.
    spellings = [value, text, [value]] if text is not None else [value, [value]]
    for candidate in spellings:
        for option in _options(hint):
            if (fitted := _fit(candidate, option)) is not _MISFIT:
                return fitted
    expected = _describe(hint)
    choices = [
        str(choice) for option in _options(hint) for choice in typing.get_args(option) if _is_literal(option)
    ]
    raise ConfigError(f"{key} is {shown(value)}, expected {expected}{suggestion(shown(value), choices)}")


_MISFIT = object()


def _options(hint: Any) -> tuple[Any, ...]:
    """The members of a union with `str` last, so that a number is read as a number where one may stand."""
    if typing.get_origin(hint) in (Union, types.UnionType):
        return tuple(sorted(typing.get_args(hint), key=lambda option: option is str))
    return (hint,)


def _is_literal(hint: Any) -> bool:
    return typing.get_origin(hint) is Literal


def _fit(value: Any, hint: Any) -> Any:
    """`value` as `hint`, or `_MISFIT`."""
    origin = typing.get_origin(hint) or hint
    if hint is Any:
        return value
    if _is_literal(hint):
        # True == 1 would pass for a literal 1.
        return value if value in typing.get_args(hint) and not isinstance(value, bool) else _MISFIT
    if hint in (int, float):
        return _number(value, hint)
    if origin is list:
        return _list(value, hint)
    if isinstance(origin, type) and issubclass(origin, Enum):
        return value if value in [member.value for member in origin] else _MISFIT
    return value if isinstance(origin, type) and isinstance(value, origin) else _MISFIT


def _number(value: Any, kind: type[int] | type[float]) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return _MISFIT
    if isinstance(value, int) and abs(value) >= LARGEST_INTEGER:
        return _MISFIT
    try:
        # YAML reads 1e-4 as a text; an int stays one, since a float would lose its last digits.
        number = float(value) if not isinstance(value, int) else value
    except ValueError:
        return _MISFIT
    if math.isnan(number):
        return _MISFIT
    if kind is float:
        return float(number)
    return int(number) if abs(number) < LARGEST_INTEGER and number == int(number) else _MISFIT


def _list(value: Any, hint: Any) -> Any:
    if not isinstance(value, list):
        return _MISFIT
    (of,) = typing.get_args(hint) or (Any,)
    fitted = [_fit(item, of) for item in value]
    return _MISFIT if _MISFIT in fitted else fitted  # one wrong item is a wrong list


def _describe(hint: Any) -> str:
    names = []
    for option in _options(hint):
        if _is_literal(option):
            names.append(f"one of {', '.join(map(str, typing.get_args(option)))}")
        elif option is types.NoneType:
            names.append("null")
        elif typing.get_origin(option) is dict:
            names.append("pairs such as {name: value}")
        else:
            names.append(option.__name__ if isinstance(option, type) else str(option))
    return " or ".join(names)
