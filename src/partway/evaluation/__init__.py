"""How good a model is: pass@k, maj@k, executable and unique shares, each with an interval, kept in files."""

from partway.evaluation.evaluate import EvaluationProgress, StreamingEngine, evaluate
from partway.evaluation.results import Evaluation, EvaluationPlan
from partway.evaluation.samples import Judged, ProblemResult
from passatk import Estimate, differences, estimates, maj_at_k, pass_at_k

__all__ = [
    "Estimate",
    "Evaluation",
    "EvaluationPlan",
    "EvaluationProgress",
    "Judged",
    "ProblemResult",
    "StreamingEngine",
    "differences",
    "estimates",
    "evaluate",
    "maj_at_k",
    "pass_at_k",
]
