"""The model that a run trains: loaded by name, made for the problems, or given; perhaps with an adapter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from partway import registry
from partway.errors import ConfigError, ModelError, one_line
from partway.models.loading import LanguageModel, load_model
from partway.models.tiny import build_tiny_model, sizes_of
from partway.problem import Problem
from partway.training.config import SelfSamplingConfig

if TYPE_CHECKING:
    from peft import PeftConfig


def prepared_model(
    model: str | PreTrainedModel | LanguageModel,
    tokenizer: PreTrainedTokenizerBase | None,
    config: SelfSamplingConfig,
    problems: Sequence[Problem],
    peft_config: PeftConfig | None = None,
) -> LanguageModel:
    """The model to train, from a name, a model with its tokenizer, or one already loaded."""
    has_adapter = config.use_peft or peft_config is not None
    base_name = None  # the name an adapter is to remember; a model made or given here has none
    if isinstance(model, str):
        if config.bits and not has_adapter:
            raise ConfigError(
                f"load_in_{config.bits}bit is true but use_peft is false: quantised weights cannot be "
                "trained; set use_peft to true"
            )
        base_name = None if model == "tiny" else model
        model = named_model(model, config, problems)
    elif not isinstance(model, LanguageModel):
        if tokenizer is None:
            raise ModelError("a model without its tokenizer cannot be trained; pass processing_class")
        model = LanguageModel.of(model, tokenizer, config.asking)
    if config.attn_implementation is not None:
        set_attention(model.model, config.attn_implementation, config.device)
    if has_adapter:
        model = registry.part("adapters", "add")(model, config, peft_config, base_name)
    return model


def set_attention(model: PreTrainedModel, name: str, device: torch.device) -> None:
    """Have the model compute attention so; layouts and samplers that it is not right for are not used."""
    if name == "flex_attention" and device.type == "cpu":  # PyTorch 2.13 dies of it, without an error
        raise ConfigError(f"attn_implementation is {name}, which ends the process on a CPU; leave it out")
    try:
        model.set_attn_implementation(name)
    except (ValueError, ImportError, KeyError) as error:
        raise ConfigError(f"attn_implementation is {name}, which fails here: {one_line(error)}") from error


def named_model(name: str, config: SelfSamplingConfig, problems: Sequence[Problem]) -> LanguageModel:
    """The model that `name` stands for; `tiny` is made for the problems."""
    if name == "tiny":
        if config.bits:
            raise ConfigError(f"load_in_{config.bits}bit is true, but the tiny model has nothing to save")
        sizes = sizes_of(config.config_overrides) if config.config_overrides else {}
        return build_tiny_model(problems, seed=config.seed, directory=None, asking=config.asking, **sizes)
    dtype = getattr(torch, config.dtype)
    device = config.device if config.bits else "cpu"  # Trainer moves it, unless it is quantised
    return load_model(name, dtype=dtype, device=device, asking=config.asking, bits=config.bits)
