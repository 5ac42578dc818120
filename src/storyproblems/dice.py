"""Draws that use nothing but `Random.random`, the one method whose sequence Python promises to keep."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def chance(rng: Random, probability: float) -> bool:
    """True with this probability."""
    return rng.random() < probability


def pick(rng: Random, options: Sequence[T]) -> T:
    """One of the options, all equally likely."""
    return options[int(rng.random() * len(options))]


def shuffled(rng: Random, items: Sequence[T]) -> list[T]:
    """The items in random order, all orders equally likely."""
    items = list(items)
    for last in range(len(items) - 1, 0, -1):
        other = int(rng.random() * (last + 1))
        items[last], items[other] = items[other], items[last]
    return items
