"""Compares ways of learning (arms) that share weights, problems, budget and selection rules."""

from typing import TYPE_CHECKING

from partway.registry import lazy_names

if TYPE_CHECKING:
    from partway.arms.arms import Arm, load_arms, shipped_arms
    from partway.arms.experiment import Experiment, read_experiment
    from partway.arms.outcomes import Outcome, Spent
    from partway.arms.running import run_arm
    from partway.arms.trials import Stage, Tell

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

__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(("Arm", "load_arms", "shipped_arms"), "arms"),
        **dict.fromkeys(("Experiment", "read_experiment"), "experiment"),
        **dict.fromkeys(("Outcome", "Spent"), "outcomes"),
        "run_arm": "running",
        **dict.fromkeys(("Stage", "Tell"), "trials"),
    },
)
