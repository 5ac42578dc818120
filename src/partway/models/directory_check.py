"""What a model's directory may hold: files from elsewhere are looked at before anything reads them.

A pickle runs code, a pipe never ends, and a config of one line can describe more layers than memory holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from partway.documents import LARGEST_JSON, Unreadable, parse_json, read_object
from partway.errors import ModelError
from partway.models import trial

MOST_PARTS = 1_024  # layers, heads, labels and experts of each; modules are made for every one
MOST_WEIGHTS_PER_BYTE = 16  # four bits a weight are two
LARGEST_TABLES = 1 << 30  # bytes of masks and positions beside the weights
LARGEST_CHAT_TEMPLATE = 1 << 20  # bytes; those of well-known models have a few thousand

_NUMBER_OF_PARTS = re.compile(r"(layer|head|label|expert|type)s?$")  # attention_types repeats layers
_PATTERNS = (
    *("target_modules", "exclude_modules", "modules_to_save", "target_parameters"),
    *("layers_pattern", "rank_pattern", "alpha_pattern"),
)
_IMPLEMENTATIONS = ("attn_implementation", "_attn_implementation", "experts_implementation")


def check_files(directory: Path, weights: str) -> None:
    """Refuse what runs code or never ends when it is read; the names of its weights begin with `weights`."""
    for path in directory.iterdir() if directory.is_dir() else ():
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise ModelError(f"{path.name} is neither a file nor a directory")
        largest = {".json": LARGEST_JSON, ".jinja": LARGEST_CHAT_TEMPLATE}.get(path.suffix)
        if largest is not None and path.stat().st_size > largest:
            raise ModelError(f"{path.name} has more than {largest:,} bytes")
    _check_pickles(directory, weights)
    for path in directory.glob("*.safetensors.index.json"):
        _check_shards(path)


def _check_pickles(directory: Path, weights: str) -> None:
    pickles = [path.name for suffix in ("bin", "pt", "pth") for path in directory.glob(f"*model*.{suffix}")]
    if pickles and not list(directory.glob(f"{weights}*.safetensors")):
        raise ModelError(
            f"its weights are pickled ({pickles[0]}), and reading a pickle can run any code; "
            "save them as safetensors where you trust them, with save_pretrained"
        )


def _check_shards(index: Path) -> None:
    """Refuse parts of the weights that are elsewhere, or pickled."""
    files = _object(index).get("weight_map")
    for name in files.values() if isinstance(files, dict) and files else [None]:
        if not isinstance(name, str) or Path(name).name != name or not name.endswith(".safetensors"):
            raise ModelError(f"{index.name} names {name!r:.60}, expected .safetensors files beside it")


def _object(path: Path) -> dict[str, Any]:
    try:
        return read_object(path, parse_json)
    except Unreadable as error:
        raise ModelError(f"{path.name}: {error}") from None


def check_config(said: Mapping[str, Any]) -> None:
    """Refuse what a config would do when it is only read: lists of a billion layers, code from the Hub."""
    for name, number in _integers(said):
        if number > MOST_PARTS and _NUMBER_OF_PARTS.search(name):
            raise ModelError(f"config.json says {name} {number!r:.40}, which no model has")
    for name in _IMPLEMENTATIONS:
        if "/" in str(said.get(name)):
            raise ModelError(f"config.json says {name} {said[name]!r:.60}, which is code; leave it out")


def _integers(value: Any, name: str = "") -> Iterator[tuple[str, int]]:
    """Every integer in a config, however deep, with the name it stands under."""
    if isinstance(value, Mapping):
        for key, held in value.items():
            yield from _integers(held, key)
    elif isinstance(value, list):
        for held in value:
            yield from _integers(held, name)
    elif isinstance(value, int):
        yield name, value


def check_sizes(directory: Path, config: Any) -> None:
    """Refuse a config that describes far more than the files beside it hold, before it takes memory.

    Weights that no file has would be made, and only then found missing.
    """
    held = sum(path.stat().st_size for path in directory.glob("*.safetensors"))
    if not held:
        return
    with torch.device("meta"):  # sizes without memory
        model = AutoModelForCausalLM.from_config(deepcopy(config), trust_remote_code=False)
    weights = sum(weight.numel() for weight in model.parameters())
    tables = sum(table.nbytes for table in model.buffers())
    if weights > MOST_WEIGHTS_PER_BYTE * held or tables > LARGEST_TABLES:
        raise ModelError(
            f"config.json describes {weights:.1e} weights and {tables:.1e} bytes of tables, "
            f"which are not in files of {held:,} bytes"
        )


def check_chat_template(tokenizer: Any) -> None:
    """Refuse a template that does not come to an end."""
    said = getattr(tokenizer, "chat_template", None)
    special = tuple((name, str(token)) for name, token in tokenizer.special_tokens_map.items())
    for template in said.values() if isinstance(said, dict) else [said]:
        if isinstance(template, str) and not trial.renders(template, special):
            raise ModelError(
                "its chat template takes too long or too much memory for a question of one letter"
            )


def adapter_config(directory: Path) -> dict[str, Any]:
    """What an adapter says about itself; no number in it may be larger than its weights are."""
    said = _object(directory / "adapter_config.json")
    held = sum(path.stat().st_size for path in directory.glob("adapter_model*.safetensors"))
    # Such as pissa_niter_16: here a number hides in a text.
    stated = [int(number) for number in re.findall(r"\d{1,18}", str(said.get("init_lora_weights")))]
    stated += [number for _, number in _integers(said)]
    if held and max(stated, default=0) > held:
        raise ModelError(f"adapter_config.json says {max(stated)!r:.40}, and its weights are {held:,} bytes")
    return said


def check_patterns(said: Mapping[str, Any], modules: Sequence[str]) -> None:
    """Refuse an adapter whose layers take for ever to find among the model's `modules`."""
    texts = [text for name in _PATTERNS for text in _texts(said.get(name))]
    # A plain name is found at once; only what is more than that is tried.
    patterns = [text for text in texts if not re.fullmatch(r"[\w.]*", text)]
    if patterns and not trial.matches(patterns, modules):
        raise ModelError(f"adapter_config.json has a pattern that takes too long ({patterns[0]!r:.60})")


def _texts(value: Any) -> list[str]:
    """The texts of a setting that is one, a list of some, or has some as keys."""
    found = [value] if isinstance(value, str) else list(value) if isinstance(value, list | dict) else []
    return [text for text in found if isinstance(text, str)]
