"""Several processes act as one: they exchange findings, and sample although the weights are sharded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torch.nn.utils import get_total_norm

from partway.errors import EngineError
from partway.learning.passes import evaluating
from partway.learning.scoring import PassLoss
from partway.models.engine import Engine

if TYPE_CHECKING:
    from partway.training.trainer import SelfSamplingTrainer

T = TypeVar("T")


def gathered(accelerator: Accelerator, value: T) -> list[T]:
    """The values of all processes, in their order."""
    if accelerator.num_processes == 1:
        return [value]
    values: list[T] = gather_object([value])
    return values


def from_first(accelerator: Accelerator, value: T) -> T:
    """The first process's value."""
    if accelerator.num_processes == 1:
        return value
    values = [value]
    broadcast_object_list(values)
    return values[0]


def maxima(accelerator: Accelerator, values: list[int]) -> list[int]:
    """The largest of each value over all processes."""
    if accelerator.num_processes == 1:
        return values
    tensor = torch.tensor(values, device=accelerator.device)
    torch.distributed.all_reduce(tensor, torch.distributed.ReduceOp.MAX)
    return [int(value) for value in tensor.tolist()]


def gradient_norm(model: Any) -> float:
    """The norm of all gradients there are, of a model spread over processes too."""
    norm = get_total_norm([weight.grad for weight in model.parameters() if weight.grad is not None])
    return float(norm.full_tensor() if isinstance(norm, DTensor) else norm)


def backward(
    accelerator: Accelerator, model: Any, passes: Iterator[PassLoss], count: int
) -> Iterator[PassLoss]:
    """Make each of so many passes and backpropagate its loss; gradients are reduced in the last one."""
    # DeepSpeed would divide by accumulation steps, which the loss, a mean over the whole batch, knows of.
    has_deepspeed = getattr(accelerator.state, "deepspeed_plugin", None) is not None
    options = {"scale_wrt_gas": False} if has_deepspeed else {}
    for number in range(count):
        with reducing(accelerator, model, is_last=number == count - 1):
            part = next(passes)
            # Processes average their gradients; the loss is a mean over the problems of all.
            accelerator.backward(part.loss * accelerator.num_processes, **options)
        yield part


@contextmanager
def reducing(accelerator: Accelerator, model: Any, is_last: bool) -> Iterator[None]:
    """Let gradients be reduced over processes only in the last pass of a step, of which there are many."""
    # Accelerate reduces whenever this flag is set; a step of many packed passes sets it for one.
    ends_step = accelerator.sync_gradients
    reduces = is_last and ends_step
    accelerator.gradient_state._set_sync_gradients(reduces)
    try:
        with nullcontext() if reduces else accelerator.no_sync(model):
            yield
    finally:
        accelerator.gradient_state._set_sync_gradients(ends_step)


@contextmanager
def placed(accelerator: Accelerator, model: Any) -> Iterator[None]:
    """While open, the first process's model is on its device; FSDP2 and DeepSpeed leave it on the CPU."""
    before = model.device
    is_moved = accelerator.is_main_process and before.type != accelerator.device.type
    if is_moved:
        model.to(accelerator.device)
    yield
    if is_moved:
        model.to(before)


@contextmanager
def whole_weights(model: Any) -> Iterator[None]:
    """All weights in this process, so that it can sample at its own pace.

    A sharded model gathers its weights in every forward pass, for which the processes would have to make
    equally many; completions are not equally long.
    """
    parts = [module for module in model.modules() if isinstance(module, FSDPModule)]
    for part in parts:
        part.set_reshard_after_forward(False)  # or the first token's forward pass would spread them again
        part.unshard()
    try:
        yield
    finally:
        for part in parts:
            part.reshard()
            part.set_reshard_after_forward(True)


@contextmanager
def sampling_mode(trainer: SelfSamplingTrainer, engine: Engine) -> Iterator[None]:
    """No dropout, no checkpointing; all weights here, told to the engine, and cast once for all forwards."""
    with evaluating(trainer.model), whole_weights(trainer.model), trainer.accelerator.autocast():
        engine.update(trainer.model, trainer.state.global_step)
        yield


@contextmanager
def stopping_together(trainer: SelfSamplingTrainer) -> Iterator[None]:
    """If servers are gone for good, all processes save what they have and stop."""
    failure: EngineError | None = None
    try:
        yield
    except EngineError as error:
        failure = error
    reason = None if failure is None else str(failure)
    # Saving takes all processes, also those whose own requests were answered.
    is_shared = trainer.engine.is_shared
    for said in gathered(trainer.accelerator, reason) if is_shared else [reason]:
        if said is not None:
            raise EngineError(f"{said}; {trainer.recorder.save_now()}") from failure
