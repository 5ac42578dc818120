"""When two ways to compute the same thing count as the same: they differ by no more than rounding does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

# Rounding errors in float32 are below a tenth of this share; a model that ignores positions is well above.
EXACT = 3e-4
ROUNDINGS = 2  # how often the effect of rounding is measured in shorter floats


def agrees(model: nn.Module, found: Tensor, plain: Callable[[], Tensor], scale: Tensor) -> bool:
    """Whether `found` is what the `plain` way gives.

    In float32 a difference counts when it is not small beside `scale`, the norm of a difference that matters,
    nor within a unit in the last place of what is compared: small models hardly look at their prompts, so
    that the difference that matters is small too. In shorter floats it counts when it is larger than what
    rounding does to the plain way.
    """
    expected = plain()
    error = (found - expected).norm()
    if is_exact(model):
        return bool(error <= EXACT * scale + torch.finfo(expected.dtype).eps * expected.norm())
    noises = []
    for seed in range(ROUNDINGS):
        with _rounded_otherwise(model, seed):
            noises.append((plain() - expected).norm())
    # Two tries do not find the largest rounding, so half as much again is allowed; but never so much that
    # a mistake would pass.
    return bool(error <= torch.minimum(1.5 * torch.stack(noises).max(), scale / 2))


def is_exact(model: nn.Module) -> bool:
    """Whether rounding is far below what a mistake does."""
    dtype = next(model.parameters()).dtype
    is_tf32 = dtype == torch.float32 and torch.get_float32_matmul_precision() != "highest"
    return dtype in (torch.float32, torch.float64) and not is_tf32


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


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode, afterwards in whatever mode it was."""
    if not model.training:
        yield
        return
    model.eval()
    try:
        yield
    finally:
        model.train()
