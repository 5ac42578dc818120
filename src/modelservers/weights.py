"""Gives servers the weights that are trained; from then on they draw with them.

Late, quantised or remote samples bias nothing: each is executed, judged against the buffer as it then is, and
scored under the weights that learn from it. So servers are told of new weights now and then, and whatever
they answer counts. Weights are put into versioned directories, which appear whole and go when nobody can name
them any more.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel

from modelservers.calls import Trouble
from modelservers.kinds import Asked, Form, Published
from modelservers.pool import Endpoint, Pool
from partway.errors import ConfigError, EngineError, PartwayError
from partway.files import atomic_directory
from partway.models.engine import SamplingSettings
from partway.models.loading import no_progress_bar

OUTPUT_LAYER = "output_layer.safetensors"  # read by servers that read every such file, by nobody else
PROBING = SamplingSettings(temperature=0.0, max_completion_length=8)
MOST_DIFFERENCE = 0.1  # of a token's log-prob, between float32 here and bfloat16 there

WeightSync = Literal["auto", "full", "lora", "none"]


class Handover:
    """Gives the servers of a pool the weights that are trained.

    They are put where `directory_of` says, with the `tokenizer`. Of several processes that share the servers,
    the first hands weights over, and `from_first` tells the others what it says. A server that tells
    log-probs is asked to complete `probe`, and `say` tells the user if it draws with other weights than it
    was given.
    """

    def __init__(
        self,
        pool: Pool,
        directory_of: Callable[[int], Path],
        tokenizer: Any,
        probe: Asked,
        *,
        weight_sync: WeightSync,
        is_first: bool,
        from_first: Callable[[Any], Any],
        say: Callable[[str], None],
    ) -> None:
        self.pool = pool
        self.weight_sync = weight_sync
        self.is_first = is_first
        self.current: Published | None = None  # what all servers should have
        self._directory_of = directory_of
        self._tokenizer = tokenizer
        self._kept: dict[int, Path] = {}  # the directories of versions that servers may still read
        self._probe = probe
        self._from_first = from_first
        self._say = say
        self._doubted: set[str] = set()

    def update(self, weights: PreTrainedModel, version: int) -> None:
        """Let all servers draw with these weights from now on."""
        if self.current is not None and self.current.version == version:
            return
        failure = None
        if self.is_first:
            try:
                self._publish(weights, version)
            except PartwayError as error:
                failure = error  # the other processes are waiting to hear of it
        having = [endpoint.url for endpoint in self.pool.live if endpoint.weights == self.current]
        self.current, having, failure = self._from_first((self.current, having, failure))
        if failure is not None:
            raise failure
        if not self.is_first:
            for endpoint in self.pool.live:
                if endpoint.url in having:
                    endpoint.weights = self.current
                else:
                    trouble = Trouble(f"it did not take the weights of step {version}")
                    self.pool.note_failure(endpoint, trouble)

    def bring_up_to_date(self, endpoint: Endpoint) -> None:
        """Let a server that was away have the current weights, or raise a `Trouble`."""
        endpoint.weights = endpoint.before = None
        if self.current is None:
            return
        if self.is_first:
            self._load(endpoint)
        elif endpoint.kind.has(self.current):
            endpoint.weights = self.current
        else:
            raise Trouble(f"it does not have the weights of step {self.current.version} yet")

    def end(self) -> None:
        """Remove the weights that were put down for servers."""
        if self.current is not None and self.is_first:
            self._remove_before(self.current.version + 1)
        self.current = None

    def _publish(self, weights: PreTrainedModel, version: int) -> None:
        if not self.pool.live:
            self.pool.look()
            self.pool.ask(lambda endpoint: None)  # what they take is known when the first one answers
        is_begun, had_live, before = self.current is not None, bool(self.pool.live), self.current
        self.current = self._written(weights, version, self._form(weights))
        self.pool.each(self._load)
        if had_live and not is_begun and not self.pool.live:  # they answer, but this will not do
            raise EngineError(f"no server takes weights ({self.pool.reasons()})")
        if before is not None:
            self._remove_before(before.version)  # a slow request may still name the one before
        for endpoint in self.pool.live:
            if endpoint.kind.tells_log_probs:
                self._compare(endpoint, weights)

    def _written(self, model: PreTrainedModel, version: int, form: Form) -> Published:
        """Write the weights; under its name, the directory is whole."""
        path = self._directory_of(version).resolve()
        if not self._kept:
            shutil.rmtree(path.parent, ignore_errors=True)  # what a killed process of the run left
        try:
            with atomic_directory(path) as directory, no_progress_bar():
                write_weights(model, directory, form)
                self._tokenizer.save_pretrained(directory)
        except OSError as error:
            raise EngineError(f"{path}: cannot write weights for the servers ({error.strerror})") from error
        self._kept[version] = path
        return Published(version, path, form)

    def _remove_before(self, version: int) -> None:
        """Remove the directories of older versions."""
        for old in [one for one in self._kept if one < version]:
            shutil.rmtree(self._kept.pop(old), ignore_errors=True)

    def _form(self, weights: PreTrainedModel) -> Form:
        """Whole weights or the adapter alone: what all servers take."""
        if self.weight_sync == "auto":
            live = self.pool.live
            takes_adapters = bool(live) and all("lora" in endpoint.kind.forms for endpoint in live)
            return "lora" if is_adapted(weights) and takes_adapters else "full"
        if self.weight_sync == "lora" and not is_adapted(weights):
            raise ConfigError("weight_sync is lora but no adapter is trained; set use_peft, or full")
        return "lora" if self.weight_sync == "lora" else "full"

    def _load(self, endpoint: Endpoint) -> None:
        """Give a server the current weights; without routes for it, it is the user's turn."""
        current = self.current  # another thread may publish newer ones meanwhile
        assert current is not None, "weights were published"
        kind = endpoint.kind
        if current.form not in kind.forms:
            raise Trouble(f"{kind.name} does not take {current.form} weights; {kind.advice()}")
        if current.form in kind.in_place:
            self.pool.drain(endpoint)
        kind.load(current)
        if endpoint.before is not None:
            kind.drop(endpoint.before)
        endpoint.before, endpoint.weights = endpoint.weights, current

    def _compare(self, endpoint: Endpoint, weights: PreTrainedModel) -> None:
        """Say so if a server's log-probs are not those of the weights here, whatever version it says it has.

        Nothing worse follows: its samples are late at most.
        """
        try:
            (written,), _ = endpoint.complete(self._probe, 1, PROBING, 0)
        except (Trouble, ValueError):
            return  # the next request will show what is wrong
        if written.tokens is None or written.log_probs is None or endpoint.url in self._doubted:
            return
        difference = abs(sum(written.log_probs) - log_prob(weights, self._probe.tokens, written.tokens))
        if difference > MOST_DIFFERENCE * max(1, len(written.tokens)):
            self._doubted.add(endpoint.url)
            self._say(
                f"{endpoint.url}: the log-prob of {len(written.tokens)} tokens is {difference:.2f} off from "
                "the model's here: it draws with other weights than it was given; see docs/gpus.md"
            )


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
    """Of the tokens after the prompt, under these weights."""
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
