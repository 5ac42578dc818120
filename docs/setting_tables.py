"""The tables of keys in docs/keys.md, made from the settings' dataclass."""

from __future__ import annotations

import collections.abc
import types
import typing
from dataclasses import MISSING, Field, fields
from textwrap import fill
from typing import Any

from partway import registry
from partway.language.named import LANGUAGES, language_class, schema_of
from partway.training.config import SelfSamplingConfig, own_fields
from partway.training.impossible import HARMLESS, REFUSED

# The first key of each group, in the order declared.
GROUPS = {
    "model_name_or_path": "What is trained",
    "language": "Language and prompts",
    "self_sampling": "Exploring",
    "engine": "Servers",
    "dedup": "Buffers",
    "objective": "Learning",
    "effective_batch_size": "Several processes",
    "eval_samples": "Evaluating",
    "use_peft": "LoRA",
    "output_dir": "Of `TrainingArguments`, with other defaults",
}


def tables() -> str:
    """All keys: ours and those with other defaults in tables, the rest of TrainingArguments in a list."""
    hints = typing.get_type_hints(SelfSamplingConfig)
    own = own_fields()
    parts = []
    for f in own:
        if f.name in GROUPS:
            parts.append(
                f"\n### {GROUPS[f.name]}\n\n| key | default | values | meaning |\n| --- | --- | --- | --- |"
            )
        parts.append(
            f"| `{f.name}` | {_default(f)} | {_choices(f) or _values(hints[f.name])} | {f.metadata['help']} |"
        )
    parts += [_language_table(name) for name in LANGUAGES | registry.parts("languages")]
    names = {f.name for f in own}
    rest = sorted(f.name for f in fields(SelfSamplingConfig) if f.init and f.name not in names)
    working = [f"`{name}`" for name in rest if name not in REFUSED and name not in HARMLESS]
    parts += ["\n### The other keys of `TrainingArguments`\n", fill(f"{', '.join(working)}.", 118)]
    harmless = ", ".join(f"`{name}`" for name in rest if name in HARMLESS)
    told = fill(f"These are taken and change nothing: {harmless}. These are refused:", 118)
    parts += [f"\n{told}\n", "| key | why |"]
    parts += ["| --- | --- |", *(f"| `{name}` | {REFUSED[name]} |" for name in rest if name in REFUSED), ""]
    return "\n".join(parts)


def _language_table(name: str) -> str:
    language = schema_of(language_class(name))
    hints = typing.get_type_hints(language)
    rows = [
        f"| `{f.name}` | {_default(f)} | {_values(hints[f.name])} | {f.metadata['help']} |"
        for f in fields(language)
    ]
    head = "| key | default | values | meaning |\n| --- | --- | --- | --- |"
    return "\n".join([f"\n### Of the language `{name}`\n", head, *rows])


def _default(f: Field[Any]) -> str:
    value = f.default if f.default is not MISSING else None
    text = str(value).lower() if isinstance(value, bool) else str(value).replace("\n", "\\n")
    return "" if value is None else f"`{text}`"


def _choices(f: Field[Any]) -> str:
    """The names a setting knows, where it also takes others."""
    names = ", ".join(f"`{choice}`" for choice in f.metadata.get("choices", ()))
    return f"{names}, `module:name`" if names else ""


def _values(hint: Any) -> str:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        options = [option for option in typing.get_args(hint) if option is not types.NoneType]
        return " or ".join(_values(option) for option in options)
    if typing.get_origin(hint) is typing.Literal:
        return ", ".join(f"`{choice}`" for choice in typing.get_args(hint))
    if typing.get_origin(hint) is collections.abc.Callable:
        return "a function"
    return str(hint).replace("typing.", "") if typing.get_origin(hint) else hint.__name__
