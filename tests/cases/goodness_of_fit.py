"""How probable it is that draws lie as far from their distribution as these, or further."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch


def chi_square_p(observed: Sequence[int], expected: Sequence[float] | np.ndarray | None = None) -> float:
    """Pearson's test of counts; without `expected` all cells are equally probable."""
    counts_C = np.array(observed, dtype=float)
    expected_C = np.full_like(counts_C, counts_C.mean()) if expected is None else np.array(expected)
    assert math.isclose(counts_C.sum(), expected_C.sum(), rel_tol=1e-8), "cells are missing"
    distance = ((counts_C - expected_C) ** 2 / expected_C).sum()
    halves = torch.tensor([len(counts_C) - 1, distance], dtype=torch.float64) / 2
    return float(torch.special.gammaincc(*halves))


def uniform_p(numbers: np.ndarray) -> float:
    """Massart's bound for the largest distance between the numbers' ranks and the numbers, on [0, 1]."""
    count = len(numbers)
    ranks = np.arange(count + 1) / count
    ordered = np.sort(numbers)
    distance = max((ranks[1:] - ordered).max(), (ordered - ranks[:-1]).max())
    return min(1.0, 2 * math.exp(-2 * count * distance**2))
