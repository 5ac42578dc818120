"""Weights in 4 or 8 bits (bitsandbytes): they cannot be trained, but an adapter on them can."""

from __future__ import annotations

import importlib.util
from typing import Any, Literal

import torch
from torch import nn
from transformers import BitsAndBytesConfig

from partway.errors import ModelError

REPACKS = "support_avx512bf16_for_cpu"  # the switch that bitsandbytes looks at in a layer


def quantization(bits: Literal[4, 8], device: torch.device, dtype: torch.dtype | str) -> dict[str, Any]:
    """What `from_pretrained` is told to keep weights in `bits`."""
    if importlib.util.find_spec("bitsandbytes") is None:
        raise ModelError(
            f"weights in {bits} bits need the package bitsandbytes; pip install 'partway[bitsandbytes]', "
            f"or leave load_in_{bits}bit out"
        )
    computed = dtype if isinstance(dtype, torch.dtype) else torch.bfloat16
    settings = BitsAndBytesConfig(
        load_in_4bit=bits == 4,
        load_in_8bit=bits == 8,
        # As in QLoRA (Dettmers et al. 2023): four bits spaced for normal weights, scales in bits too.
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=computed,
    )
    return {"quantization_config": settings, "device_map": {"": device}}


def keep_gradients(model: nn.Module) -> None:
    """Keep bitsandbytes from repacking weights in 4 bits on a CPU: what is repacked passes no gradient on.

    It does so the first time a layer is only evaluated, on processors with AVX512-BF16, and fails where a
    layer is narrower than a block of 64 weights.
    """
    for layer in model.modules():
        if hasattr(layer, REPACKS):
            setattr(layer, REPACKS, False)
