"""The settings as a JSON Schema, for editors that complete and check a config while it is written."""

from __future__ import annotations

import json
import types
import typing
from dataclasses import MISSING, Field, fields
from enum import Enum
from typing import Any, Literal, Union

from partway.cli.config_files import BASE
from partway.cli.training_keys import language_schemas
from partway.training.config import SelfSamplingConfig

Schema = dict[str, Any]

# YAML in Python takes 1e-4 for a text; the settings take such texts for the numbers they write.
NUMBER_AS_TEXT: Schema = {"type": "string", "pattern": r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"}
KINDS: dict[Any, list[Schema]] = {
    bool: [{"type": "boolean"}],
    int: [{"type": "integer"}, NUMBER_AS_TEXT],
    float: [{"type": "number"}, NUMBER_AS_TEXT],
    str: [{"type": "string"}],
    dict: [{"type": "object"}],
    list: [{"type": "array"}],
    types.NoneType: [{"type": "null"}],
}


def config_schema() -> Schema:
    """The schema of what `partway train` reads."""
    hints = typing.get_type_hints(SelfSamplingConfig)
    properties = {f.name: _property(f, hints[f.name]) for f in fields(SelfSamplingConfig) if f.init}
    for language in language_schemas():  # whose settings may stand beside the others
        hints = typing.get_type_hints(language)
        properties = {f.name: _property(f, hints[f.name]) for f in fields(language)} | properties
    base = {"type": "string"}
    properties[BASE] = {
        "anyOf": [base, {"type": "array", "items": base}],
        "description": "Files beside this one to begin from; what this one says comes on top.",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "partway train",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _property(f: Field[Any], hint: Any) -> Schema:
    options = _options(hint)
    schema: Schema = {"anyOf": options} if len(options) > 1 else dict(options[0])
    if text := f.metadata.get("help"):
        schema["description"] = " ".join(str(text).split())
    if choices := list(f.metadata.get("choices") or ()):
        schema["examples"] = choices  # names that are known; others may be given as package.module:name
    if f.default is not MISSING and _is_plain(f.default):
        schema["default"] = f.default.value if isinstance(f.default, Enum) else f.default
    return schema


def _options(hint: Any) -> list[Schema]:
    """What may stand for a setting, as `partway.settings.coerce` takes it."""
    origin = typing.get_origin(hint)
    if hint is Any:
        return [{}]
    if origin in (Union, types.UnionType):
        found = [option for part in typing.get_args(hint) for option in _options(part)]
        # Schemas are dicts, which no set takes: equal ones are dropped by comparing.
        return [option for index, option in enumerate(found) if option not in found[:index]]
    if origin is Literal:
        return [{"enum": list(typing.get_args(hint))}]
    if origin is list:
        items = [option for part in typing.get_args(hint) for option in _options(part)]
        return [{"type": "array", "items": {"anyOf": items}}, *items]  # one item may stand alone
    if isinstance(hint, type) and issubclass(hint, Enum):
        return [{"enum": [member.value for member in hint]}]
    return KINDS.get(origin or hint, [{}])


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
