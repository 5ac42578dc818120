"""Settings that make no run: each is refused by name, before any work, with what to set instead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from partway.errors import ConfigError
from partway.evaluation import EvaluationPlan, JudgedSample, ProblemResult

if TYPE_CHECKING:
    from partway.training.config import SelfSamplingConfig

MOST_SEEDS = 2**32  # what NumPy takes


def check_settings(config: SelfSamplingConfig) -> None:
    """Refuse counts out of range and settings that contradict each other."""
    _check_counts(config)
    _check_exploring(config)
    _check_length(config)
    _check_model(config)
    # Made here once, since each refuses what it cannot be made of.
    _ = config.sampling, config.loss, config.language, config.named_columns
    if config.eval_strategy != "no":
        _check_metric(config, _metric_names(config.evaluation))


def _check_counts(config: SelfSamplingConfig) -> None:
    least = {"num_generations": 0, "sampling_start_step": 0, "length_tolerance": 0, "eval_samples": 0}
    least |= dict.fromkeys(("tokens_per_pass", "buffer_sync_steps", "per_device_train_batch_size"), 1)
    least |= dict.fromkeys(("max_solutions_per_problem", "solutions_per_step", "effective_batch_size"), 1)
    least |= dict.fromkeys(("max_eval_problems", "early_stopping_patience", "lora_r"), 1)
    least |= dict.fromkeys(("learning_rate", "weight_decay", "warmup_steps", "max_grad_norm", "seed"), 0)
    least |= dict.fromkeys(("length_limit", "num_generations_unsolved", "weight_sync_steps"), 1)
    least |= {"engine_timeout": 0, "explore_ahead": 0}
    for name, minimum in least.items():
        if (value := getattr(config, name)) is not None and value < minimum:
            raise ConfigError(f"{name} is {value}, expected at least {minimum}")
    if config.seed >= MOST_SEEDS:
        raise ConfigError(f"seed is {config.seed}, expected less than {MOST_SEEDS}")


def _check_exploring(config: SelfSamplingConfig) -> None:
    if config.self_sampling != "none" and config.num_generations == 0:
        raise ConfigError(
            f"self_sampling is {config.self_sampling} but num_generations is 0: nothing would be sampled; "
            "set num_generations to 1 or more, or self_sampling to none"
        )
    if config.loss.advantages is not None:
        _check_policy_gradient(config)
    if not 0 <= config.reference_share <= 1:
        raise ConfigError(f"reference_share is {config.reference_share}, expected a share between 0 and 1")
    if config.stitch and config.self_sampling != "fcs+pcs":
        raise ConfigError(
            f"stitch is true but self_sampling is {config.self_sampling}: only right beginnings are "
            "completed; set self_sampling to fcs+pcs"
        )


def _check_length(config: SelfSamplingConfig) -> None:
    if config.max_steps < -1 or config.max_steps == 0:
        raise ConfigError(
            f"max_steps is {config.max_steps}, expected a number of steps, or -1 to count num_train_epochs"
        )
    if config.max_steps == -1 and not 0 < config.num_train_epochs < math.inf:
        raise ConfigError(f"num_train_epochs is {config.num_train_epochs}, expected more than 0")
    if config.output_dir is not None and not config.output_dir.strip():
        raise ConfigError("output_dir is empty, expected the path of a directory for the run")
    for name in ("eval_strategy", "logging_strategy"):
        if getattr(config, name) == "epoch" and config.save_strategy == "steps":
            raise ConfigError(
                f"{name} is epoch but save_strategy is steps, so a run could not be resumed exactly; "
                "use the same for both"
            )
    if not config.eval_samples and not config.eval_pass1_samples:
        raise ConfigError("eval_samples and eval_pass1_samples are both 0; set eval_strategy to no instead")


def _check_model(config: SelfSamplingConfig) -> None:
    if config.config_overrides and config.model_name_or_path != "tiny":
        raise ConfigError(
            f"config_overrides sets sizes of `tiny`, but model_name_or_path is {config.model_name_or_path}"
        )
    if config.load_in_4bit and config.load_in_8bit:
        raise ConfigError("load_in_4bit and load_in_8bit are both true; choose one")
    if config.torch_compile:
        raise ConfigError(
            "torch_compile is true, but passes differ in size at every step, so the model would be "
            "compiled again and again; set it to false"
        )
    if config.use_liger_kernel and find_spec("liger_kernel") is None:
        raise ConfigError(
            "use_liger_kernel is true but the package liger-kernel is not installed; pip install "
            "liger-kernel, or set it to false"
        )
    strategy = getattr(config.hub_strategy, "value", config.hub_strategy)  # of an enumeration, or its name
    if config.push_to_hub and strategy in ("checkpoint", "all_checkpoints"):
        raise ConfigError(
            f"hub_strategy is {strategy}, but only final/ is uploaded, after training; set it to end"
        )


def _check_policy_gradient(config: SelfSamplingConfig) -> None:
    # A group of one has no mean to compare with; a guided sample is not one of P(y|x).
    if config.num_generations < 2 or config.self_sampling != "fcs":
        raise ConfigError(
            f"objective is {config.objective} with {config.num_generations} samples per problem and "
            f"self_sampling {config.self_sampling}; samples of one problem are compared with each other, "
            "from the start of a solution: set num_generations to 2 or more and self_sampling to fcs"
        )
    if config.objective == "pkpo" and not 2 <= config.pkpo_k <= config.num_generations:
        raise ConfigError(
            f"pkpo_k is {config.pkpo_k}, expected 2 to {config.num_generations}, the number of samples"
        )


def _check_metric(config: SelfSamplingConfig, names: Sequence[str]) -> None:
    metric = (config.metric_for_best_model or names[0]).removeprefix("eval_")  # both spellings are taken
    if metric not in names:
        raise ConfigError(
            f"metric_for_best_model is {config.metric_for_best_model}, which evaluations do not give; "
            f"expected one of {', '.join(f'eval_{name}' for name in names)}"
        )


def _metric_names(plan: EvaluationPlan) -> list[str]:
    """The metrics an evaluation gives, found by scoring a problem with no right sample."""

    def wrong(count: int) -> tuple[JudgedSample, ...]:
        return (JudgedSample("", False, "", count, executable=False),) if count else ()

    return list(ProblemResult("", wrong(plan.samples), wrong(plan.pass1_samples)).scores(plan.ks))
