"""What n samples of a problem say: pass@k and maj@k, exactly, and the intervals of their means."""

from passatk.counts import maj_at_k, pass_at_k
from passatk.intervals import CONFIDENCE, ENOUGH_RUNS, Estimate, Scores, differences, estimates

__all__ = [
    "CONFIDENCE",
    "ENOUGH_RUNS",
    "Estimate",
    "Scores",
    "differences",
    "estimates",
    "maj_at_k",
    "pass_at_k",
]
