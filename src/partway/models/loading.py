"""Loading P_theta by name: Hugging Face directories and names, run directories, adapters, `smollm2`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from partway.errors import ModelError
from partway.models.text import Codec


@dataclass(frozen=True)
class LanguageModel:
    """A causal model, how text becomes its tokens, and how many tokens it can attend to."""

    model: PreTrainedModel
    codec: Codec
    context_length: int


def load_model(
    name: str | Path, *, dtype: torch.dtype | None = None, device: str | torch.device | None = None
) -> LanguageModel:
    """The model that `name` stands for, in evaluation mode."""
    try:
        model = AutoModelForCausalLM.from_pretrained(name, dtype=dtype or torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise ModelError(f"{name}: {str(error).splitlines()[0]}") from error
    model.to(device or "cpu")
    return LanguageModel(model.eval(), Codec.of(tokenizer), model.config.max_position_embeddings)
