"""The model that a run trains: loaded by name, made for the problems, or given; perhaps with an adapter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from partway.errors import ConfigError, ModelError, one_line
from partway.files import atomic_directory
from partway.models.loading import LanguageModel, load_model, no_progress_bar
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
    if peft_config is None and config.use_peft:
        peft_config = lora_config(config)
    base_name = None  # the name an adapter is to remember; a model made or given here has none
    if isinstance(model, str):
        if config.bits and peft_config is None:
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
    return model if peft_config is None else with_adapter(model, peft_config, config.seed, base_name)


def lasting_name(name: str) -> str:
    """The name under which a model is found again from any directory."""
    path = Path(name).expanduser()
    return str(path.resolve()) if path.is_dir() else name


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


def lora_config(config: SelfSamplingConfig) -> PeftConfig:
    """The adapter that the `lora_*` settings describe."""
    try:
        from peft import LoraConfig
    except ImportError:
        raise ConfigError("use_peft needs the package peft; pip install 'partway[peft]'") from None
    return LoraConfig(
        r=config.lora_r,
        lora_alpha=config.lora_alpha,
        lora_dropout=config.lora_dropout,
        target_modules=config.lora_target_modules,
        task_type="CAUSAL_LM",
    )


def with_adapter(
    language_model: LanguageModel, peft_config: PeftConfig, seed: int, base_name: str | None = None
) -> LanguageModel:
    """The model with an adapter to train in place of its weights; `base_name` finds the model again."""
    from peft import get_peft_model, prepare_model_for_kbit_training

    base: Any = language_model.model
    # Norms in float32, and inputs that pass gradients on: weights in a few bits need both.
    if getattr(base, "is_quantized", False):
        base = prepare_model_for_kbit_training(base, use_gradient_checkpointing=False)
    # The adapter's first weights depend on the seed alone, and drawing them moves no other random number.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            model = get_peft_model(base, peft_config)
        except ValueError as error:
            raise ConfigError(f"lora_target_modules: {one_line(error)}") from error
    for adapter in model.peft_config.values():
        named = adapter.base_model_name_or_path
        if not named or not Path(named).is_dir():  # a model of ours is in a directory, which peft can read
            named = base_name or named
        adapter.base_model_name_or_path = lasting_name(named) if named else None
    return LanguageModel(model, language_model.codec, language_model.context_length)


def save_nameless_base(model: Any, tokenizer: PreTrainedTokenizerBase, directory: Path) -> None:
    """Save what an adapter was put on, if no name leads to it, so that the adapter names where it is."""
    adapters = getattr(model, "peft_config", {}).values()
    if not adapters or any(adapter.base_model_name_or_path for adapter in adapters):
        return
    for adapter in adapters:
        adapter.base_model_name_or_path = str(directory.resolve())
    if directory.is_dir():  # of a run that goes on
        return
    base = model.get_base_model()
    # The adapter wraps modules in place: their names are put back, its own weights are left out.
    weights = {
        name.replace(".base_layer", ""): weight
        for name, weight in base.state_dict().items()
        if ".lora_" not in name
    }
    with no_progress_bar(), atomic_directory(directory) as fresh:
        base.save_pretrained(fresh, state_dict=weights)
        tokenizer.save_pretrained(fresh)
