"""The experiments of the demo, comparisons like others (`partway.arms`), and the models they begin from.

Few written solutions and many answers, from a model that is still learning: what self-sampling is for. Or the
paper's experiment in small: few problems, one reference each, many epochs, from a model that knows such
problems: learning from the references alone makes it overconfident.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from partway.arms.arms import load_arms
from partway.arms.experiment import Experiment
from partway.demo.stories import easy_problems, is_for_pretraining
from partway.problem import Problem

logger = logging.getLogger(__name__)
FLOOR_AND_CEILING = ("oracle", "base", "chance")
ARMS = ("mle", "fcs", "fcs+pcs")
ALL_ARMS = ("mle", "fcs-mml", "fcs", "fcs-beta-mml", "fcs+pcs-mml", "fcs+pcs", "fcs+pcs-beta-mml")
BASE_STEPS = 400


def experiment_named(name: str) -> Experiment:
    """`normal` or `quick` with few references; `paper`, `paper-quick` or `full` with all of them."""
    # A first look in a minute or two: too few problems and steps for narrow intervals.
    small: dict[str, Any] = {"test": 40, "dev": 30, "steps": 30, "eval_steps": 15, "dev_samples": 5}
    if name == "full":
        return Experiment(load_arms(ALL_ARMS), seeds=(0, 1, 2))
    if name.startswith("paper"):
        arms = load_arms(ARMS)
        return Experiment(arms, **small, test_samples=20) if name == "paper-quick" else Experiment(arms)
    few = load_arms(["mle", "fcs+pcs", *FLOOR_AND_CEILING])
    if name == "quick":
        return Experiment(few, **small, test_samples=10, train=320, references=16, num_generations=4)
    return Experiment(
        few,
        train=1_280,
        references=64,
        num_generations=4,
        steps=120,  # after a hundred steps or so dev says that it is enough
        eval_steps=40,
        dev_samples=10,
        test=400,
        test_samples=20,
    )


def base_model(directory: Path, quiet: bool) -> str:
    """A model that is still learning: few steps on problems that no experiment uses; made once."""
    from partway.runs import Run

    run = Run(directory)
    if not run.is_finished:
        logger.info("first a tiny model learns a little; everything that is compared begins from it")
        problems = pretraining_problems(12_500)
        train(directory, problems[:6_000], max_steps=BASE_STEPS, learning_rate=2e-3, disable_tqdm=quiet)
    return str(run.final)


def pretraining_problems(drawn: int = 32_000) -> list[Problem]:
    """What models have seen before an experiment, which uses none of them: half of what is drawn."""
    return [problem for problem in easy_problems(drawn, seed=0) if is_for_pretraining(problem)]


def pretrain(directory: Path) -> None:
    """Make the shipped model anew: a tiny model trained from scratch on the references alone."""
    length = {"loss_normalization": "length", "lr_scheduler_type": "cosine"}
    train(directory, pretraining_problems(), max_steps=1_000, learning_rate=3e-3, **length)


def train(directory: Path, problems: Sequence[Problem], **settings: Any) -> None:
    """Train a tiny model from scratch on references, on one thread, so that it is the same everywhere."""
    from partway.arms.side_by_side import one_thread
    from partway.training import SelfSamplingConfig, SelfSamplingTrainer

    config = SelfSamplingConfig(
        output_dir=str(directory),
        model_name_or_path="tiny",
        self_sampling="none",
        objective="mle",
        warmup_steps=50,
        per_device_train_batch_size=32,
        save_steps=250,
        eval_strategy="no",
        load_best_model_at_end=False,
        seed=0,
        report_to="none",
        **settings,
    )
    with one_thread():
        SelfSamplingTrainer("tiny", config, problems).train(resume_from_checkpoint="auto")
