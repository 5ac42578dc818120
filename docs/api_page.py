"""The page of the Python interface, made from signatures and docstrings."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

HEADER = """# Python interface

After this page you can find every class and function that is meant to be used; what is not listed may
change. It is made from the docstrings by `make docs`.
"""
MOST_FIELDS = 20  # more are settings, which have a page of their own
MODULES = {
    "partway": "Problems, solutions, traces, buffers",
    "partway.data": "Data",
    "partway.training": "Training",
    "partway.sample": "Requests and samples",
    "partway.models.engine": "Engines",
    "partway.evaluation": "Evaluation",
    "partway.runs": "Run directories",
    "partway.rewards": "Rewards for other trainers",
    "partway.errors": "Errors",
}


def api_page() -> str:
    """Every public name, where it is found first, with what it takes and what it is for."""
    sections, seen = [], set()
    for name, title in MODULES.items():
        module = importlib.import_module(name)
        names = [public for public in public_names(module) if public not in seen]
        seen.update(names)
        parts = [part for public in names for part in _entry(public, getattr(module, public))]
        sections.append(f"## {title}: `{name}`\n\n" + "\n".join(parts))
    return "\n".join([HEADER, *sections]).rstrip() + "\n"


def public_names(module: Any) -> list[str]:
    """What a module exports: what it says, or what it defines without an underscore."""
    if listed := getattr(module, "__all__", None) or list(getattr(module, "_HOMES", ())):
        return list(listed)
    own = (
        name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__
    )
    return [name for name in own if not name.startswith("_")]


def _entry(name: str, value: Any) -> Iterator[str]:
    if not (inspect.isclass(value) or inspect.isfunction(value)) or value.__module__ == "builtins":
        return
    yield f"### {name}\n"
    if signature := _signature(value):
        yield f"```python\n{name}{signature}\n```\n"
    yield f"{_described(value)}\n"
    if inspect.isclass(value) and issubclass(value, Enum):
        yield ", ".join(f"`{member.value}`" for member in value) + "\n"
    elif _is_settings(value):
        yield "Its fields are the [keys](keys.md).\n"
    elif inspect.isclass(value) and (methods := list(_methods(value))):
        yield "\n".join([*methods, ""])


def _methods(owner: type) -> Iterator[str]:
    for name, found in vars(owner).items():
        function = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
        if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
            called = "" if isinstance(found, property) else _called(function)
            yield f"- `{name}{called}`: {_sentence(function)}"


def _called(function: Any) -> str:
    """The signature of a method without what Python hands over itself."""
    return re.sub(r"^\((self|cls)(, )?", "(", _signature(function))


def _is_settings(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and len(dataclasses.fields(value)) > MOST_FIELDS


def _signature(value: Any) -> str:
    kinds = (BaseException, Enum)
    if inspect.isclass(value) and (issubclass(value, kinds) or getattr(value, "_is_protocol", False)):
        return ""
    text = "(...)" if _is_settings(value) else str(inspect.signature(value))
    text = re.sub(r"PythonPrograms\((?:[^()]|\([^()]*\))*\)", "PYTHON", text)
    text = re.sub(r"<factory>|<(?:function|object) .*? at 0x[0-9a-f]+>", "...", text)
    text = re.sub(r"ForwardRef\('(.*?)'\)", r"\1", text)
    text = re.sub(r"""(: |-> )(['"])(.*?)\2(?=[,)= ]|$)""", r"\1\3", text)  # annotations are texts
    return text.removesuffix(" -> None")


def _described(value: Any) -> str:
    """The docstring without its examples' prompts lost: they become a block of code."""
    text = inspect.cleandoc(value.__doc__ or "")
    before, mark, examples = text.partition(">>> ")
    if not mark:
        return text if "├" not in text else f"```text\n{text}\n```"
    return f"{before.strip()}\n\n```python\n{mark}{examples.strip()}\n```"


def _sentence(value: Any) -> str:
    return re.split(r"(?<=[.!?])\s", " ".join((value.__doc__ or "").split()), maxsplit=1)[0]
