"""An evaluation in a training: each process on its share of the problems, all with the same metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from partway.evaluation import Evaluation, evaluate
from partway.models.engine import Metered
from partway.problem import Problem
from partway.training.distributed import gathered
from partway.training.engines import sampling_mode

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
