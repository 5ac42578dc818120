"""Runs general programs with `stepbox` and gives their traces."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import stepbox
from partway.errors import SandboxError
from straightline import Execution, Failure

ALLOW_WEAK = "PARTWAY_ALLOW_WEAK_SANDBOX"  # an environment variable: 1 accepts systems without the walls
_peaks: ContextVar[list[int] | None] = ContextVar("_peaks", default=None)  # within `peaks`


def run(programs: Sequence[tuple[str, ...]], *, until: str, second: bool = False) -> list[Execution]:
    """The room `isolated`: the first program starts its workers."""
    with in_our_words():
        found = stepbox.run(programs, until=until, second=second, allow_weak=weak_is_allowed())
    if (held := _peaks.get()) is not None:
        held.extend(one.peak_bytes for one in found)
    return [Execution(one.changes, _failure(one.failure)) for one in found]


@contextmanager
def peaks() -> Iterator[list[int]]:
    """While open, the most bytes that the process of each program held, in the order in which they ran."""
    held: list[int] = []
    before = _peaks.set(held)
    try:
        yield held
    finally:
        _peaks.reset(before)


def weak_is_allowed() -> bool:
    """Whether the user accepts a sandbox without the kernel's walls."""
    return os.environ.get(ALLOW_WEAK, "") not in ("", "0")


@contextmanager
def in_our_words() -> Iterator[None]:
    """What is wrong with the box, as an error of partway's."""
    try:
        yield
    except stepbox.WeakBox as error:
        raise SandboxError(
            f"{error}; --allow-weak-sandbox or {ALLOW_WEAK}=1 accepts that risk: partway doctor"
        ) from None
    except stepbox.BoxError as error:
        raise SandboxError(f"{error}: partway doctor") from None


def _failure(found: stepbox.Failure | None) -> Failure | None:
    return None if found is None else Failure(found.kind, found.message, found.step, found.is_own)
