"""Loading P_theta by name: Hugging Face directories and names, run directories, adapters, `smollm2`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from huggingface_hub import HfApi
from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]  # httpx's or httpx2's
from safetensors import safe_open
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from partway.errors import ModelError, PartwayError
from partway.models import smollm2
from partway.models.directory_check import (
    adapter_config,
    check_chat_template,
    check_config,
    check_files,
    check_patterns,
    check_sizes,
)
from partway.models.prompts import AS_TRAINED, Asking
from partway.models.quantizing import Bits, keep_gradients, quantization
from partway.models.text import Codec
from partway.runs import Run

PRETRAINED_TINY = "tiny-storyproblems"  # the demo's: made by `partway demo --pretrain`
HUB_TIMEOUT = 10.0
HUB_ERRORS = (OSError, HTTPError)  # no network, no such name, no right to it
UNLIMITED = 1 << 20  # the context of models that state none

Precision = torch.dtype | Literal["auto"]
Loaded = tuple[PreTrainedModel, PreTrainedTokenizerBase]


@dataclass(frozen=True)
class LanguageModel:
    """A causal model, how text becomes its tokens, and how many tokens it can attend to."""

    model: PreTrainedModel
    codec: Codec
    context_length: int

    @classmethod
    def of(
        cls, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, asking: Asking | None = None
    ) -> LanguageModel:
        """The model with its tokenizer; they are checked to go together.

        Without `asking`, a chat template counts only if it bears our mark: the model was trained with it.
        """
        tokenizer = tokenizer if asking is None else asking.prepared(tokenizer)
        _leave_weights_alone(model)
        config = model.config.get_text_config(decoder=True)
        context_length = getattr(config, "max_position_embeddings", None) or UNLIMITED
        first_end = next(iter(as_list(config.eos_token_id)), None)
        codec = Codec.of(tokenizer, eos_id=first_end, vocabulary_size=config.vocab_size)
        _stop_at(model, codec.eos_id, config.vocab_size)
        return cls(model, codec, context_length)


def _leave_weights_alone(model: PreTrainedModel) -> None:
    """Keep RWKV from halving weights of deep layers while it samples: a checkpoint would hold the halves.

    It does so for the range of float16, and would undo it only in the next pass with gradients.
    """
    if getattr(model.config, "rescale_every", 0):
        for part in model.modules():
            if getattr(part, "layers_are_rescaled", False):  # it has been sampled from already
                mode = part.training
                part.train()._rescale_layers()
                part.train(mode)
        model.config.rescale_every = 0


def _stop_at(model: PreTrainedModel, end: int, vocabulary_size: int) -> None:
    """Let whoever generates with the model stop where its answers end: in a chat, at the end of a turn."""
    settings = model.generation_config
    if settings is not None:
        ends = as_list(settings.eos_token_id)
        if not all(isinstance(one, int) and 0 <= one < vocabulary_size for one in ends):
            raise ModelError(
                f"generation_config.json says eos_token_id {ends!r:.60}, expected some of the model's "
                f"{vocabulary_size} tokens"
            )
        settings.eos_token_id = ends if end in ends else [*ends, end]


def load_model(
    name: str | Path,
    *,
    dtype: torch.dtype | None = None,
    device: str | torch.device | None = None,
    asking: Asking = AS_TRAINED,
    bits: Bits = None,
) -> LanguageModel:
    """The model that `name` stands for, in evaluation mode, asked as `asking` says.

    Without a device, the first GPU or else the CPU. Without a dtype, float32 on a CPU and elsewhere what the
    weights were saved in. With `bits`, weights of matrices are kept in so many; they cannot be trained, but
    an adapter on them can.
    """
    device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    precision: Precision = dtype or (torch.float32 if device.type == "cpu" else "auto")
    try:
        with no_progress_bar():
            model, tokenizer = _load(str(name), precision, quantization(bits, device, precision))
        # A run's directory may be named, or its final model or a checkpoint, which lie in it.
        is_of_run = any(Run(folder).is_started for folder in (Path(name), Path(name).parent))
        as_trained = None if is_of_run and asking.is_default else asking
        model = model if bits else model.to(device)  # what is quantised is where it is to be
        return LanguageModel.of(model.eval(), tokenizer, as_trained)
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from error
    except PartwayError:
        raise
    except Exception as error:  # a broken directory makes transformers raise errors of every kind
        raise ModelError(f"{name}: cannot be loaded as a model: {_one_line(error)}") from error


def _load(name: str, precision: Precision, packed: Mapping[str, Any]) -> Loaded:
    if name == smollm2.NAME:
        if packed:
            raise ModelError("comes in its own packed form; leave load_in_4bit and load_in_8bit out")
        return smollm2.load_smollm2(torch.float32 if precision == "auto" else precision)
    own = Path(__file__).parent / "tiny_storyproblems"
    path = own if name == PRETRAINED_TINY else Path(name).expanduser()
    if path.is_dir():
        path = model_directory(path)
        return (_load_adapter if _is_adapter(path) else _load_pretrained)(str(path), precision, packed)
    if path.exists():
        raise ModelError("is a file; expected the directory of a model or of a run")
    # The shape of a name on the Hub; anything else was meant as a path.
    if not re.fullmatch(r"[\w-][\w.-]*(/[\w.-]+)?", name):
        raise ModelError("no such directory; expected a model, a run, a name on the Hub, or smollm2")
    _look_up(name)
    return _load_pretrained(name, precision, packed)


def model_directory(path: Path) -> Path:
    """The model in `path`: itself; of a run the final model, else the best checkpoint, else the last one."""
    if (path / "config.json").is_file() or _is_adapter(path):
        return path
    run = Run(path)
    if not run.is_started:
        raise ModelError("no model here (config.json is missing); expected a model's or a run's directory")
    if (directory := run.model_directory()) is None:
        raise ModelError("a run without a checkpoint yet; wait for its first one")
    return directory


def _is_adapter(path: Path) -> bool:
    return (path / "adapter_config.json").is_file()


def _load_pretrained(name: str, precision: Precision, packed: Mapping[str, Any]) -> Loaded:
    # In this order: each of these looks at what the next one would act upon.
    check_files(Path(name), "model")
    check_config(PreTrainedConfig.get_config_dict(name)[0])
    check_sizes(Path(name), AutoConfig.from_pretrained(name, trust_remote_code=False))
    tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    check_chat_template(tokenizer)
    model, report = AutoModelForCausalLM.from_pretrained(
        name,
        dtype=precision,
        trust_remote_code=False,
        output_loading_info=True,
        use_safetensors=True,
        **packed,
    )
    keep_gradients(model)
    if missing := sorted(report["missing_keys"]):
        raise ModelError(f"{len(missing)} weights are missing, {missing[0]} for one; save the model again")
    return model, tokenizer


def _load_adapter(name: str, precision: Precision, packed: Mapping[str, Any]) -> Loaded:
    try:
        from peft import PeftModel, get_peft_model_state_dict
    except ImportError:
        raise ModelError(
            "an adapter, which needs the package peft; try: pip install 'partway[peft]'"
        ) from None
    check_files(Path(name), "adapter_model")
    said = adapter_config(Path(name))
    base = _base_of(Path(name), said)
    try:
        model, tokenizer = _load(base, precision, packed)
    except ModelError as error:
        raise ModelError(f"an adapter whose base model is {base}: {error}") from error
    if (Path(name) / "tokenizer_config.json").is_file():
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        check_chat_template(tokenizer)
    check_patterns(said, [module for module, _ in model.named_modules()])
    adapted = PeftModel.from_pretrained(model, name)
    with safe_open(Path(name) / "adapter_model.safetensors", "pt") as weights:
        if missing := sorted(get_peft_model_state_dict(adapted).keys() - {*weights.keys()}):
            raise ModelError(f"{len(missing)} weights of the adapter are missing, {missing[0]} for one")
    return adapted, tokenizer


def _base_of(adapter: Path, said: Mapping[str, Any]) -> str:
    """The model that an adapter belongs to: by name, or kept in the run that the adapter is of."""
    named = said.get("base_model_name_or_path")
    kept = Run(adapter.parent).base
    if kept.is_dir() and (not named or not Path(str(named)).exists()):
        return str(kept)
    if not named:
        raise ModelError("an adapter that does not name its base model (base_model_name_or_path)")
    return str(named)


def _look_up(name: str) -> None:
    """Fail soon if a name is neither in the cache nor on the Hub; downloading would try many times."""
    try:
        PreTrainedConfig.get_config_dict(name, local_files_only=True)
    except OSError:
        try:
            HfApi().model_info(name, timeout=HUB_TIMEOUT)
        except HUB_ERRORS as error:
            raise ModelError(
                "no such directory, not in the Hugging Face cache, and not found on the Hub"
                f" ({_one_line(error)}); check the name, or give the path of a model"
            ) from error


def as_list(ids: Any) -> list[Any]:
    """The end-of-text tokens of a config, which may be none, one, or a list."""
    return [] if ids is None else ids if isinstance(ids, list) else [ids]


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(" .:")


@contextmanager
def no_progress_bar() -> Iterator[None]:
    """Keep transformers from drawing bars, which are for models that take minutes."""
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()
