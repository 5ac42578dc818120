"""Evaluates during training: each process takes a share of the problems; ties for the best are settled."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from partway.evaluation import Evaluation, evaluate
from partway.models.engine import Metered
from partway.problem import Problem
from partway.training.distributed import gathered, sampling_mode

if TYPE_CHECKING:
    from partway.training.trainer import SelfSamplingTrainer


def evaluated(trainer: SelfSamplingTrainer, problems: Sequence[Problem], prefix: str) -> dict[str, float]:
    """The metrics of the model as it is; in training the evaluation is written to the run."""
    args, engine = trainer.args, Metered(trainer.engine)
    plan = replace(args.evaluation, language=trainer.language)
    with trainer.clock.span("evaluating"), sampling_mode(trainer, trainer.engine):
        own = problems[args.process_index :: args.world_size]
        watch, drafts = trainer.recorder.watch, trainer.buffers.drafts_for
        drawn = evaluate(engine, own, plan, on_progress=watch, drafts_for=drafts) if own else None
        parts = gathered(trainer.accelerator, (drawn.results if drawn else (), engine.tokens))
        # In the order of the problems, whichever process had which of them.
        everything = {result.task_id: result for results, _ in parts for result in results}
        evaluation = Evaluation.of(tuple(everything[problem.id] for problem in problems), plan)
    if trainer.is_world_process_zero() and trainer.is_in_train:
        with trainer.recorder.writing("an evaluation"):
            trainer.run.write_evaluation(trainer.state.global_step, evaluation)
    more = {} if trainer.compute_metrics is None else trainer.compute_metrics(evaluation)
    metrics = evaluation.scalars(f"{prefix}_") | {f"{prefix}_{name}": value for name, value in more.items()}
    metrics[f"{prefix}_tokens_drawn"] = sum(tokens for _, tokens in parts)
    return metrics


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
