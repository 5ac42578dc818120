"""Weights for servers to read: versioned directories that appear whole and go when nobody can name them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel

from partway.errors import EngineError
from partway.files import atomic_directory
from partway.models.loading import no_progress_bar

Form = Literal["full", "lora"]
OUTPUT_LAYER = "output_layer.safetensors"  # read by servers that read every such file, by nobody else


@dataclass(frozen=True, slots=True)
class Published:
    """The weights of training step `version`, in a directory: a whole model, or an adapter to one."""

    version: int
    directory: Path
    form: Form

    @property
    def name(self) -> str:
        """What a server calls an adapter of this version."""
        return f"partway-{self.version}"


class Shelf:
    """The directories of the versions that servers may still read."""

    def __init__(self, directory_of: Callable[[int], Path], tokenizer: Any) -> None:
        self.directory_of = directory_of
        self.tokenizer = tokenizer
        self._kept: dict[int, Path] = {}

    def publish(self, model: PreTrainedModel, version: int, form: Form) -> Published:
        """Write the weights; under its name, the directory is whole."""
        path = self.directory_of(version).resolve()
        if not self._kept:
            shutil.rmtree(path.parent, ignore_errors=True)  # what a killed life of the run left
        try:
            with atomic_directory(path) as directory, no_progress_bar():
                write_weights(model, directory, form)
                self.tokenizer.save_pretrained(directory)
        except OSError as error:
            raise EngineError(f"{path}: cannot write weights for the servers ({error.strerror})") from error
        self._kept[version] = path
        return Published(version, path, form)

    def remove_before(self, version: int) -> None:
        """Remove the directories of older versions."""
        for old in [one for one in self._kept if one < version]:
            shutil.rmtree(self._kept.pop(old), ignore_errors=True)


def write_weights(model: PreTrainedModel, directory: Path, form: Form) -> None:
    """Save a model; of one with an adapter either the adapter alone, or all with the adapter added."""
    if form == "lora":
        model.save_pretrained(directory)
        return
    whole: Any = model.get_base_model() if is_adapted(model) else model
    weights = merged_weights(whole) if is_adapted(model) else whole.state_dict()
    if name := tied_output(whole):
        save_file({name: weights[name].contiguous()}, directory / OUTPUT_LAYER)
    whole.save_pretrained(directory, state_dict=weights)  # which takes tied ones out of them


def tied_output(model: PreTrainedModel) -> str | None:
    """The name of the output layer's weights, if they are those of the embeddings.

    Such weights are saved once, under the name of the embeddings. vLLM on a CPU keeps a packed copy for the
    output layer, which it renews only when it reads them under the name of the output layer.
    """
    inputs, output = model.get_input_embeddings(), model.get_output_embeddings()
    if output is None or output.weight is not inputs.weight:
        return None
    return next(f"{name}.weight" for name, module in model.named_modules() if module is output)


def log_prob(model: PreTrainedModel, prompt: Sequence[int], tokens: Sequence[int]) -> float:
    """Of the tokens behind the prompt, under these weights."""
    ids = torch.tensor([[*prompt, *tokens]], device=model.device)
    with torch.no_grad():
        log_probs_T_V = model(input_ids=ids).logits[0].float().log_softmax(-1)
    places = range(len(prompt) - 1, len(prompt) + len(tokens) - 1)
    return float(sum(log_probs_T_V[place, token] for place, token in zip(places, tokens, strict=True)))


def is_adapted(model: Any) -> bool:
    """Whether an adapter is trained in place of the weights."""
    return hasattr(model, "peft_config") and hasattr(model, "get_base_model")


def merged_weights(base: Any) -> dict[str, Tensor]:
    """The weights with their adapter added, in new memory.

    Adding it in place and taking it away again would change the weights that are trained by rounding.
    """
    modules = dict(base.named_modules())
    merged = {}
    for name, weight in base.state_dict().items():
        if ".base_layer." in name:
            module_name, _, kind = name.partition(".base_layer.")
            layer = modules[module_name]
            if kind == "weight":
                (adapter,) = layer.active_adapters
                weight = weight + layer.get_delta_weight(adapter).to(weight)
            merged[f"{module_name}.{kind}"] = weight
        elif ".lora_" not in name:
            merged[name] = weight
    return merged
