"""How good a model is: pass@k, maj@k, executable and unique shares, each with an interval, kept in files."""

from partway.evaluation.compare import Comparison, compare
from partway.evaluation.evaluate import Progress, StreamingEngine, evaluate, evaluate_into
from partway.evaluation.journal import Journal
from partway.evaluation.metrics import Estimate, maj_at_k, pass_at_k
from partway.evaluation.plan import Plan
from partway.evaluation.results import Evaluation
from partway.evaluation.samples import ProblemResult, Sample

__all__ = [
    "Comparison",
    "Estimate",
    "Evaluation",
    "Journal",
    "Plan",
    "ProblemResult",
    "Progress",
    "Sample",
    "StreamingEngine",
    "compare",
    "evaluate",
    "evaluate_into",
    "maj_at_k",
    "pass_at_k",
]
