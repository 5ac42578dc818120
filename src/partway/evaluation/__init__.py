"""How good a model is: pass@k, maj@k, executable and unique shares, each with an interval, kept in files."""

from partway.evaluation.evaluate import EvaluationProgress, StreamingEngine, evaluate, evaluate_into
from partway.evaluation.intervals import Estimate, differences, estimates
from partway.evaluation.journal import EvaluationJournal
from partway.evaluation.metrics import maj_at_k, pass_at_k
from partway.evaluation.paired import Comparison, compare
from partway.evaluation.plan import EvaluationPlan
from partway.evaluation.results import Evaluation
from partway.evaluation.samples import JudgedSample, ProblemResult

__all__ = [
    "Comparison",
    "Estimate",
    "Evaluation",
    "EvaluationJournal",
    "EvaluationPlan",
    "EvaluationProgress",
    "JudgedSample",
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
