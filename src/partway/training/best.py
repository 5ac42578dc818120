"""Which checkpoint is the best: by its metric, then by pass@k at the largest k, then the later one."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any


def wins_tie(metrics: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether an evaluation with the same metric as an earlier one takes its place as the best.

    >>> wins_tie({"eval_pass@1": 0.5, "eval_pass@10": 0.7}, {"eval_pass@1": 0.5, "eval_pass@10": 0.8})
    False
    >>> wins_tie({"eval_pass@5": 0.9, "eval_pass@20": 0.7}, {"eval_pass@5": 0.1, "eval_pass@20": 0.8})
    False
    >>> wins_tie({"eval_pass@1": 0.5}, {"eval_pass@1": 0.5})
    True
    """
    # Where that is equal too, the later one has learned more.
    return _at_largest_k(metrics) >= _at_largest_k(before)


def evaluation_at(lines: Sequence[Mapping[str, Any]], step: int | None) -> Mapping[str, Any]:
    """The line of the evaluation at `step`; empty if there is none."""
    # Only evaluations have the key; of two at the same step the later counts.
    found = (line for line in reversed(lines) if line.get("step") == step and "eval_tokens_drawn" in line)
    return next(found, {})


def _at_largest_k(metrics: Mapping[str, Any]) -> float:
    # Not pass@1_at_temperature, which is no k of its own; as numbers: "5" comes behind "20" as text.
    by_k = {int(found[1]): key for key in metrics if (found := re.fullmatch(r"eval_pass@(\d+)", key))}
    return float(metrics[by_k[max(by_k)]]) if by_k else -math.inf
