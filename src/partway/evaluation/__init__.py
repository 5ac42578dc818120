"""How good a model is: pass@k, maj@k, executable and unique shares, each with an interval, kept in files."""

from partway.evaluation.evaluate import (
    EvaluationJournal,
    EvaluationProgress,
    StreamingEngine,
    evaluate,
    evaluate_into,
)
from partway.evaluation.intervals import Estimate, differences, estimates
from partway.evaluation.metrics import maj_at_k, pass_at_k
from partway.evaluation.paired import Comparison, compare
from partway.evaluation.results import Evaluation, EvaluationPlan
from partway.evaluation.samples import Judged, ProblemResult

__all__ = [
    "Comparison",
    "Estimate",
    "Evaluation",
    "EvaluationJournal",
    "EvaluationPlan",
    "EvaluationProgress",
    "Judged",
    "ProblemResult",
    "StreamingEngine",
    "compare",
    "differences",
    "estimates",
    "evaluate",
    "evaluate_into",
    "maj_at_k",
    "pass_at_k",
]
