"""An Apple GPU, as far as there can be one elsewhere: tensors that say `mps`, and that refuse float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

MPS, META = torch.device("mps"), torch.device("meta")


class OnApple(Tensor):
    """A tensor that says it is on the GPU; what it holds is on the CPU, and PyTorch takes it for `meta`."""

    held: Tensor
    device = property(lambda self: MPS)  # type: ignore[assignment]
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held: Tensor) -> OnApple:
        shape = {"strides": held.stride(), "storage_offset": held.storage_offset(), "dtype": held.dtype}
        made: OnApple = Tensor._make_wrapper_subclass(cls, held.shape, device=META, **shape)
        made.held = held
        return made

    def as_subclass(self, cls: Any) -> Any:
        """Masks of ours are known by their class, and not read."""
        return self.held.as_subclass(cls)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return computed(func, args, kwargs or {})


def computed(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What the operation gives, where its inputs are or where it is told to be."""
    to, given = kwargs.get("device"), tree_flatten([args, kwargs])[0]
    is_on_gpu = any(isinstance(one, OnApple) for one in given) if to is None else to == META
    args, kwargs = tree_map_only(OnApple, lambda one: one.held, [args, kwargs])
    result = func(*args, **kwargs if to is None else kwargs | {"device": torch.device("cpu")})
    return tree_map_only(Tensor, lambda one: _moved(one, func), result) if is_on_gpu else result


def _moved(held: Tensor, func: object) -> OnApple:
    assert held.dtype != torch.float64, f"{func} makes a float64 on an Apple GPU, which has none"
    return OnApple(held)


class _Operations(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return computed(func, args, kwargs or {})


class _Names(TorchFunctionMode):
    """Where a function is told `mps`, PyTorch hears `meta`."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [args, kwargs or {}]
        args, kwargs = given if func is torch.device else tree_map_only(str | torch.device, _heard, given)
        if func is torch.tensor and kwargs.get("device") == META:  # not an operation until it is moved
            return func(*args, **kwargs | {"device": "cpu"}).to(META)
        return func(*args, **kwargs)


def _heard(name: str | torch.device) -> str | torch.device:
    return META if name in ("mps", MPS) else name


@contextmanager
def apple_gpu() -> Iterator[None]:
    """While it is open there is such a GPU."""
    with _Names(), _Operations():
        yield
