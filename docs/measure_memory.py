"""Bytes that a learning pass holds a token and layer, for models of docs/performance.md at their real widths.

Two numbers of layers at two numbers of tokens, so that what does not grow with both falls out. On a GPU:

    python docs/measure_memory.py [MODEL]
"""

from __future__ import annotations

import random
import sys
from itertools import product
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from transformers import AutoModelForCausalLM, GPTNeoConfig, LlamaConfig, PreTrainedConfig, Qwen3Config

from partway.learning.layouts import Tree, TreeRows
from partway.learning.token_tree import Targets

VOCABULARY = 512  # small: logits are counted apart
LAYERS, TOKENS = (1, 2), (256, 512)


def shape(name: str, layers: int) -> PreTrainedConfig:
    """The model's config.json, with so many layers."""
    some: dict[str, Any] = {"num_hidden_layers": layers, "vocab_size": VOCABULARY}
    if name.startswith("gpt-neo"):
        width, heads = {"gpt-neo-125m": (768, 12), "gpt-neo-2.7B": (2560, 20)}[name]
        return GPTNeoConfig(
            hidden_size=width,
            num_layers=layers,
            num_heads=heads,
            attention_types=[[["global"], layers]],
            vocab_size=VOCABULARY,
        )
    if name == "Qwen3-0.6B":
        sizes = {"hidden_size": 1024, "intermediate_size": 3072, "head_dim": 128}
        return Qwen3Config(num_attention_heads=16, num_key_value_heads=8, **sizes, **some)
    if name == "Llama-3.2-1B":
        sizes = {"hidden_size": 2048, "intermediate_size": 8192, "head_dim": 64}
        return LlamaConfig(num_attention_heads=32, num_key_value_heads=8, **sizes, **some)
    sizes = {"hidden_size": 960, "intermediate_size": 2560}
    return LlamaConfig(num_attention_heads=15, num_key_value_heads=5, **sizes, **some)


def peak(name: str, layers: int, tokens: int, precision: str, *, checkpointing: bool) -> int:
    """The most bytes held in one pass beyond weights and gradients."""
    model: Any = AutoModelForCausalLM.from_config(shape(name, layers))
    if checkpointing:
        model.gradient_checkpointing_enable()
    model = model.to("cuda")
    AcceleratorState._reset_state()  # the precision may be another than before
    model = Accelerator(mixed_precision=precision).prepare(model)
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    rng = random.Random(0)

    def some(length: int) -> tuple[int, ...]:
        return tuple(rng.randrange(VOCABULARY) for _ in range(length))

    batch = [Targets.of(some(65), [some(33), some(32)]) for _ in range(tokens // 128)]  # trees of 128 nodes
    model.train()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    layout = TreeRows() if Tree().hindrance(model) else Tree()
    (bundle,) = layout.bundles(batch, tokens)
    bundle.score(model, 0).sum().backward()
    return torch.cuda.max_memory_allocated() - before


def per_token_and_layer(name: str, precision: str, *, checkpointing: bool = False) -> float:
    """What a token adds in a layer."""
    found = {
        (layers, tokens): peak(name, layers, tokens, precision, checkpointing=checkpointing)
        for layers, tokens in product(LAYERS, TOKENS)
    }
    (few, many), (short, long) = LAYERS, TOKENS
    both = found[many, long] - found[few, long] - found[many, short] + found[few, short]
    return both / (many - few) / (long - short)


if __name__ == "__main__":
    for name in sys.argv[1:] or [
        "gpt-neo-125m",
        "gpt-neo-2.7B",
        "SmolLM2-360M",
        "Qwen3-0.6B",
        "Llama-3.2-1B",
    ]:
        for precision, checkpointing in (("no", False), ("bf16", False), ("bf16", True)):
            found = per_token_and_layer(name, precision, checkpointing=checkpointing)
            print(name, precision, "checkpointing" if checkpointing else "", f"{found:.0f}", flush=True)
