"""What `python -m benchmarks learn` races: our scorer, and padded flat rows through the stock model."""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

from benchmarks.batching import batches_by_length, right_padded
from partway.learning.scoring import Scorer
from partway.learning.token_tree import Targets
from partway.models.loading import load_model
from partway.models.text import Codec
from partway.models.tiny import build_tiny_model
from partway.objectives import objective
from partway.problem import Problem


@dataclass(frozen=True)
class Measured:
    """A step of one contender: its best time, what it computed, its memory beyond weights and gradients."""

    seconds: float
    tokens: int
    peak_megabytes: float | None
    gradient: Tensor


def contestant(name: str, problems: Sequence[Problem]) -> tuple[PreTrainedModel, Codec]:
    """The model to race with, in training mode: `tiny`, `135m` (of that shape, random) or any by its name."""
    tiny = build_tiny_model(problems)
    if name == "tiny":
        return tiny.model.train(), tiny.codec
    if name != "135m":
        loaded = load_model(name)
        return loaded.model.train(), loaded.codec
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    return LlamaForCausalLM(config).train(), tiny.codec


def learn_flat(model: PreTrainedModel, problems: Sequence[Targets], pad_id: int, rows_at_once: int) -> int:
    """MLE-Aug the straightforward way: padded rows sorted by length, all logits; returns tokens computed."""
    pairs = [(problem.prompt, target) for problem in problems for target in problem.sequences]
    lengths = [len(prompt) + len(target) for prompt, target in pairs]
    tokens = 0
    for batch in batches_by_length(lengths, rows_at_once):
        inputs = right_padded([pairs[place] for place in batch], pad_id)
        # The stock model divides its sum by this number: the mean over problems, as ours.
        loss: Tensor = model(**inputs, num_items_in_batch=torch.tensor(len(problems))).loss
        torch.autograd.backward(loss)
        tokens += inputs["input_ids"].numel()
    return tokens


def learn_ours(model: PreTrainedModel, problems: Sequence[Targets], scorer: Scorer) -> int:
    """MLE-Aug with our scorer; returns tokens computed."""
    plan = scorer.plan(problems)
    for one in scorer.losses(model, plan, objective("mle_aug")):
        torch.autograd.backward(one.loss)
    return plan.tokens_computed


def race(
    model: PreTrainedModel, contenders: Mapping[str, Callable[[], int]], rounds: int
) -> dict[str, Measured]:
    """Each contender in turn: first a step that is not timed but weighed, then `rounds` timed ones."""
    weighed = {name: _weighed(model, step) for name, step in contenders.items()}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, step in contenders.items():
            model.zero_grad(set_to_none=False)
            started = time.perf_counter()
            step()
            seconds[name].append(time.perf_counter() - started)
    # The best time: whatever else runs on the machine only adds to it.
    return {name: Measured(min(seconds[name]), *weighed[name]) for name in contenders}


def _weighed(model: PreTrainedModel, step: Callable[[], int]) -> tuple[int, float | None, Tensor]:
    """Tokens, memory and gradient of a step; gradients are there before, so that they do not count."""
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    before = _reset_peak()
    tokens = step()
    peak = None if before is None else _memory("VmHWM") - before
    return tokens, peak, torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def _reset_peak() -> float | None:
    """Let the system forget the most memory this process has held; how much it holds now, if it can say."""
    gc.collect()
    if sys.platform != "linux":
        return None
    try:
        # Memory that was freed but kept by the allocator would hide what the next step takes.
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")  # 5: reset the peak, VmHWM
    except OSError:
        return None
    return _memory("VmRSS")


def _memory(field: str) -> float:
    """A line of the process's status, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024
