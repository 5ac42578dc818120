"""The paper's experiment in small: MLE against self-sampling, from one pretrained model.

Few problems, one reference each, many epochs: learning from the references alone makes the model
overconfident. It is a comparison like others (`partway.arms`), in three sizes.
"""

from __future__ import annotations

from pathlib import Path

from partway.arms.arms import load_arms
from partway.arms.experiment import Experiment
from partway.demo.stories import easy_problems, is_for_pretraining
from partway.problem import Problem

ARMS = ("mle", "fcs", "fcs+pcs")
ALL_ARMS = ("mle", "fcs-mml", "fcs", "fcs-beta-mml", "fcs+pcs-mml", "fcs+pcs", "fcs+pcs-beta-mml")


def experiment_named(name: str) -> Experiment:
    """The experiment in three sizes: `quick`, `normal`, `full`."""
    if name == "full":
        return Experiment(load_arms(ALL_ARMS), seeds=(0, 1, 2))
    arms = load_arms(ARMS)
    # A first look in minutes on two cores: too few problems and steps for narrow intervals.
    if name == "quick":
        return Experiment(arms, test=40, dev=30, steps=30, eval_steps=15, dev_samples=5, test_samples=20)
    return Experiment(arms)


def pretraining_problems() -> list[Problem]:
    """What the pretrained model has seen: thousands of problems, none of which an experiment uses."""
    return [problem for problem in easy_problems(32_000, seed=0) if is_for_pretraining(problem)]


def pretrain(directory: Path) -> None:
    """Make the pretrained model anew: a tiny model trained from scratch on the references alone."""
    from partway.training import SelfSamplingConfig, SelfSamplingTrainer

    config = SelfSamplingConfig(
        output_dir=str(directory),
        model_name_or_path="tiny",
        self_sampling="none",
        objective="mle",
        loss_normalization="length",
        max_steps=1_000,
        learning_rate=3e-3,
        lr_scheduler_type="cosine",
        warmup_steps=50,
        per_device_train_batch_size=32,
        save_steps=250,
        eval_strategy="no",
        load_best_model_at_end=False,
        seed=0,
        report_to="none",
    )
    SelfSamplingTrainer("tiny", config, pretraining_problems()).train()
