"""Comparisons: arms from the same weights, on the same problems, with the same budget and selection rules."""

from partway.comparing.arms import Arm, load_arms, shipped_arms
from partway.comparing.experiment import Experiment, read_experiment
from partway.comparing.outcomes import Outcome, Spent
from partway.comparing.running import run_arm
from partway.comparing.trials import Stage, Tell

__all__ = [
    "Arm",
    "Experiment",
    "Outcome",
    "Spent",
    "Stage",
    "Tell",
    "load_arms",
    "read_experiment",
    "run_arm",
    "shipped_arms",
]
