"""Measures what rounding to shorter floats does to a model's log-probs; a shortcut may differ as much."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

ROUNDINGS = 2  # how often its effect is measured


def rounding(model: nn.Module, expected: Tensor, plain: Callable[[], Tensor]) -> Tensor:
    """How far the `plain` way may be from what it gave, `expected`, by rounding alone."""
    noises = []
    for seed in range(ROUNDINGS):
        with _rounded_otherwise(model, seed):
            noises.append(torch.linalg.vector_norm(plain() - expected))
    # Two tries do not find the largest rounding, so half as much again is allowed.
    return 1.5 * torch.stack(noises).max()


@contextmanager
def _rounded_otherwise(model: nn.Module, seed: int) -> Iterator[None]:
    """While open, what each layer puts out is moved by half a unit in its last place, up or down by chance.

    Two right ways to compute the same thing differ as rounding does: this says by how much.
    """
    generator = torch.Generator().manual_seed(seed)

    def move(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        # Outputs in float32 are those of shortened products, which are as coarse as bfloat16 at worst.
        half = torch.finfo(torch.bfloat16 if output.dtype == torch.float32 else output.dtype).eps / 2
        signs = 2 * torch.randint(0, 2, output.shape, generator=generator).to(output.device) - 1
        return (output.float() * (1 + half * signs)).to(output.dtype)

    layers = (m for m in model.modules() if isinstance(m, (nn.Linear, nn.Embedding, Conv1D)))
    hooks = [layer.register_forward_hook(move) for layer in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
