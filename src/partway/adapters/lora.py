"""LoRA adapters (peft): put on a model to be trained, loaded on the model they belong to, kept with a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from partway import registry
from partway.adapters.few_bits import keep_gradients
from partway.errors import ConfigError, ModelError, one_line
from partway.files import Unreadable, atomic_directory, parse_json, read_object
from partway.models.loading import LanguageModel, Loaded, no_progress_bar
from partway.runs import Run

if TYPE_CHECKING:
    from peft import PeftConfig

    from partway.training import SelfSamplingConfig


DROPOUT = 0.05  # as TRL has it; `peft_config` sets any other


def lora_config(config: SelfSamplingConfig) -> PeftConfig:
    """The adapter that the `lora_*` settings describe."""
    try:
        from peft import LoraConfig
    except ImportError:
        raise ConfigError("use_peft needs the package peft; pip install 'partway[peft]'") from None
    return LoraConfig(
        r=config.lora_r,
        lora_alpha=config.lora_alpha,
        lora_dropout=DROPOUT,
        target_modules=config.lora_target_modules,
        task_type="CAUSAL_LM",
    )


def with_adapter(
    language_model: LanguageModel,
    config: SelfSamplingConfig,
    peft_config: PeftConfig | None = None,
    base_name: str | None = None,
) -> LanguageModel:
    """The model with an adapter to train in place of its weights; `base_name` finds the model again."""
    peft_config = peft_config or lora_config(config)
    from peft import get_peft_model, prepare_model_for_kbit_training

    base: Any = language_model.model
    # Norms in float32, and inputs that pass gradients on: weights in a few bits need both.
    if getattr(base, "is_quantized", False):
        keep_gradients(base)
        base = prepare_model_for_kbit_training(base, use_gradient_checkpointing=False)
    # The adapter's first weights depend on the seed alone, and drawing them moves no other random number.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
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


def lasting_name(name: str) -> str:
    """The name under which a model is found again from any directory."""
    path = Path(name).expanduser()
    return str(path.resolve()) if path.is_dir() else name


def save_nameless_base(model: Any, tokenizer: PreTrainedTokenizerBase, directory: Path) -> None:
    """Save what an adapter was put on, if no name leads to it, so that the adapter names where it is."""
    adapters = model.peft_config.values()
    if any(adapter.base_model_name_or_path for adapter in adapters):
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


def load_adapter(directory: Path, load: Callable[[str], Loaded]) -> Loaded:
    """The adapter in a directory, on its base model, which `load` loads by name."""
    try:
        from peft import PeftModel, get_peft_model_state_dict
    except ImportError:
        raise ModelError(
            "an adapter, which needs the package peft; try: pip install 'partway[peft]'"
        ) from None
    try:
        config = read_object(directory / "adapter_config.json", parse_json)
    except Unreadable as error:
        raise ModelError(f"adapter_config.json: {error}") from None
    base = _base_of(directory, config)
    try:
        model, tokenizer = load(base)
    except ModelError as error:
        raise ModelError(f"an adapter whose base model is {base}: {error}") from error
    if (directory / "tokenizer_config.json").is_file():
        tokenizer = AutoTokenizer.from_pretrained(directory, trust_remote_code=False)
    adapted = PeftModel.from_pretrained(model, directory)
    adapted.active_peft_config.base_model_name_or_path = model.name_or_path  # where it is found now
    with safe_open(directory / "adapter_model.safetensors", "pt") as weights:
        if missing := sorted(get_peft_model_state_dict(adapted).keys() - {*weights.keys()}):
            raise ModelError(f"{len(missing)} weights of the adapter are missing, {missing[0]} for one")
    return adapted, tokenizer


def _base_of(adapter: Path, said: Mapping[str, Any]) -> str:
    """The model that an adapter belongs to: by name, or kept in the run that the adapter is of."""
    named, run = said.get("base_model_name_or_path"), Run(adapter.parent)
    if named and Path(str(named)).is_dir():
        return str(named)
    if run.base.is_dir():
        return str(run.base)
    asked = run.config.get("model_name_or_path") if run.is_started else None
    if asked in registry.parts("models"):  # the adapter names where that is on the machine it comes from
        return str(asked)
    if not named:
        raise ModelError("an adapter that does not name its base model (base_model_name_or_path)")
    return str(named)
