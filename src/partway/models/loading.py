"""Loads P_theta by name: Hugging Face directories and names, runs, adapters, and what folders add."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from huggingface_hub import HfApi
from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]  # httpx's or httpx2's
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from partway import registry
from partway.errors import ModelError, PartwayError, one_line, suggestion
from partway.models.prompts import AS_TRAINED, Asking
from partway.models.text import Codec
from partway.runs import Run

PRETRAINED_TINY = "tiny-storyproblems"  # made by `partway.demo.sizes.pretrain`
HUB_TIMEOUT = 10.0
HUB_ERRORS = (OSError, HTTPError)  # no network, no such name, no right to it
UNLIMITED = 1 << 20  # the context of models that state none

Bits = Literal[4, 8] | None  # of a weight; None: as it was saved
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
        if len({*getattr(model, "hf_device_map", {}).values()}) > 1:
            raise ModelError("its layers are on several devices; load it without device_map, or onto one")
        tokenizer = tokenizer if asking is None else asking.prepared(tokenizer)
        _leave_weights_alone(model)
        config = model.config.get_text_config(decoder=True)
        context_length = getattr(config, "max_position_embeddings", None) or UNLIMITED
        first_end = next(iter(as_list(config.eos_token_id)), None)
        codec = Codec.of(tokenizer, eos_id=first_end, vocabulary_size=config.vocab_size)
        _stop_at(model, codec.eos_id, config.vocab_size)
        return cls(model, codec, context_length)


def _leave_weights_alone(model: PreTrainedModel) -> None:
    """Keep RWKV from halving weights of deep layers while it samples: a checkpoint would hold the halves."""
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
    dtype: torch.dtype | str | None = None,
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
    precision: Precision = torch.float32 if device.type == "cpu" else "auto"
    precision = getattr(torch, dtype) if isinstance(dtype, str) else dtype or precision
    with _naming(name), no_progress_bar():
        packed = registry.part("adapters", "pack")(bits, device, precision) if bits else {}
        model, tokenizer = _load(str(name), precision, packed)
        model = model if bits else model.to(device)  # what is quantised is where it is to be
        return LanguageModel.of(model.eval(), tokenizer, _as_trained(name, asking))


def load_codec(name: str | Path, asking: Asking = AS_TRAINED) -> Codec:
    """How the model that `name` stands for is asked, by its tokenizer alone: its weights are elsewhere."""
    with _naming(name):
        tokenizer = AutoTokenizer.from_pretrained(_located(str(name)), trust_remote_code=False)
        how = _as_trained(name, asking)
        return Codec.of(tokenizer if how is None else how.prepared(tokenizer))


def _as_trained(name: str | Path, asking: Asking) -> Asking | None:
    """How to ask; None for the model of a run, as the run did, unless something else is said."""
    return None if Run.around(name) and asking.is_default else asking


@contextmanager
def _naming(name: str | Path) -> Iterator[None]:
    """Errors say which model they are about."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from error
    except PartwayError:
        raise
    except Exception as error:  # a broken directory makes transformers raise errors of every kind
        raise ModelError(f"{name}: cannot be loaded as a model: {one_line(error, lines=1)}") from error


def _load(name: str, precision: Precision, packed: Mapping[str, Any]) -> Loaded:
    if packed and name in registry.parts("models"):
        raise ModelError("comes in its own packed form; leave load_in_4bit and load_in_8bit out")
    where = _located(name)
    if not _is_adapter(Path(where)):
        return _load_pretrained(where, precision, packed)
    _check_weights(Path(where), "adapter_model")
    load_base = partial(_load, precision=precision, packed=packed)
    loaded: Loaded = registry.part("adapters", "load")(Path(where), load_base)
    return loaded


def _located(name: str) -> str:
    """The directory of a model, or its name on the Hub."""
    if (added := registry.parts("models").get(name)) is not None:
        return str(added.load()())
    own = Path(__file__).parent / "tiny_storyproblems"
    path = own if name == PRETRAINED_TINY else Path(name).expanduser()
    if path.is_dir():
        return str(model_directory(path))
    if path.exists():
        if (reader := registry.parts("model files").get(path.suffix)) is not None:
            return str(reader.load()(path))
        raise ModelError("is a file; expected the directory of a model or of a run")
    # The shape of a name on the Hub; anything else was meant as a path.
    if not re.fullmatch(r"[\w-][\w.-]*(/[\w.-]+)?", name):
        raise ModelError("no such directory; expected a model, a run, a name on the Hub, or smollm2")
    _look_up(name)
    return name


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
    _check_weights(Path(name), "model")
    _check_implementations(PreTrainedConfig.get_config_dict(name)[0])
    tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    model, report = AutoModelForCausalLM.from_pretrained(
        name,
        dtype=precision,
        trust_remote_code=False,
        output_loading_info=True,
        use_safetensors=True,
        **packed,
    )
    if missing := sorted(report["missing_keys"]):
        raise ModelError(f"{len(missing)} weights are missing, {missing[0]} for one; save the model again")
    return model, tokenizer


def _check_weights(directory: Path, name: str) -> None:
    """Refuse weights that are pickled; the names of their files begin with `name`."""
    pickles = [path.name for suffix in ("bin", "pt", "pth") for path in directory.glob(f"*model*.{suffix}")]
    if pickles and not list(directory.glob(f"{name}*.safetensors")):
        raise ModelError(
            f"its weights are pickled ({pickles[0]}), and reading a pickle can run any code; "
            "save them as safetensors where you trust them, with save_pretrained"
        )


def _check_implementations(config: Mapping[str, Any]) -> None:
    """Refuse code from the Hub, which a config can name as the way to compute attention."""
    for key in ("attn_implementation", "_attn_implementation", "experts_implementation"):
        if "/" in str(config.get(key)):
            raise ModelError(f"config.json says {key} {config[key]!r:.60}, which is code; leave it out")


def _look_up(name: str) -> None:
    """Fail soon if a name is neither in the cache nor on the Hub; downloading would try many times."""
    if name == "tiny":  # `partway train` makes it
        raise ModelError(f"a model to be trained, without weights yet; a trained one is {PRETRAINED_TINY}")
    try:
        PreTrainedConfig.get_config_dict(name, local_files_only=True)
    except OSError:
        try:
            HfApi().model_info(name, timeout=HUB_TIMEOUT)
        except HUB_ERRORS as error:
            found = "not found on the Hub" if hasattr(error, "response") else "no connection to the Hub"
            near = suggestion(name, [PRETRAINED_TINY, *registry.parts("models")])
            raise ModelError(
                f"no such directory, not in the Hugging Face cache, and {found} ({one_line(error, lines=1)})"
                f"{near or '; check the name, or give the path of a model'}{registry.missing_parts()}"
            ) from error


def as_list(ids: Any) -> list[Any]:
    """The end-of-text tokens of a config, which may be none, one, or a list."""
    return [] if ids is None else ids if isinstance(ids, list) else [ids]


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
