"""Which of two evaluations with the same metric has the better model."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
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
    # By pass@k at the largest k; where that is equal too, the later one has learned more.
    return _at_largest_k(metrics) >= _at_largest_k(before)


def _at_largest_k(metrics: Mapping[str, Any]) -> float:
    # Not pass@1_at_temperature; as numbers: "5" comes after "20" as text.
    by_k = {int(found[1]): key for key in metrics if (found := re.fullmatch(r"eval_pass@(\d+)", key))}
    return float(metrics[by_k[max(by_k)]]) if by_k else -math.inf


def settle_tie(state: Any, metrics: Mapping[str, Any], metric_for_best: str | None) -> None:
    """Let an evaluation that ties with the best take its place if it wins; transformers would not."""
    name = f"eval_{(metric_for_best or '').removeprefix('eval_')}"
    if state.best_global_step is None or metrics.get(name) != state.best_metric:
        return
    # Only evaluations have the key; of two at the same step the later counts.
    lines = (line for line in reversed(state.log_history) if "eval_tokens_drawn" in line)
    if wins_tie(metrics, next((line for line in lines if line["step"] == state.best_global_step), {})):
        state.best_metric = None  # whatever comes next is better
