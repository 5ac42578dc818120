"""The keys of `partway train` for shell completion, read from source so that TAB does not wait for torch."""

from __future__ import annotations

import ast
import typing
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import partway
from partway import registry
from partway.errors import CodeError
from partway.language.named import LANGUAGES, language_class, schema_of

Choices = dict[str, tuple[str, ...]]


def language_schemas() -> list[type]:
    """The settings of every language that can be used here: one of a folder may need a package of its own."""
    found: list[type] = []
    for name in LANGUAGES | registry.parts("languages"):
        with suppress(CodeError):
            found.append(schema_of(language_class(name)))
    return found


@cache
def training_keys() -> Choices:
    """Every key with the values it can take, if they are a few words; ours first."""
    ours = _fields(Path(partway.__file__).parent / "training" / "config.py", "SelfSamplingConfig")
    for schema in language_schemas():
        hints = typing.get_type_hints(schema)
        ours |= {
            key: typing.get_args(hint) if typing.get_origin(hint) is Literal else ()
            for key, hint in hints.items()
        }
    spec = find_spec("transformers")
    if spec is None or spec.origin is None:
        return ours
    # First for their place in the list, last for their values: a field of ours wins over theirs.
    return {**ours, **_fields(Path(spec.origin).parent / "training_args.py", "TrainingArguments"), **ours}


def _fields(path: Path, name: str) -> Choices:
    """The annotated fields of a class, by name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    owner = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    return {
        node.target.id: _choices(node.annotation)
        for node in owner.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        if not node.target.id.startswith("_")
    }


def _choices(annotation: ast.expr) -> tuple[str, ...]:
    match annotation:
        case ast.Name(id="bool"):
            return ("true", "false")
        case ast.Subscript(value=ast.Name(id="Literal"), slice=ast.Tuple(elts=words)):
            return tuple(str(word.value) for word in words if isinstance(word, ast.Constant))
    return ()
