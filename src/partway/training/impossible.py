"""Refuses settings that cannot work, before anything is loaded, and says what to set instead."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import fields
from importlib.util import find_spec
from typing import TYPE_CHECKING

from partway import registry
from partway.errors import ConfigError
from partway.evaluation import EvaluationPlan, Judged, ProblemResult
from partway.evaluation.samples import whole

if TYPE_CHECKING:
    from partway.training.config import SelfSamplingConfig

MOST_SEEDS = 2**32  # what NumPy takes

_COMPILING = "passes differ in size at every step, so the model would be compiled again and again"
_EVALUATING = "an evaluation draws samples and runs them, many of a problem at a time; nothing is predicted"
# Keys of TrainingArguments that would have no effect, or a wrong one, and why: other values are refused.
REFUSED = {
    "label_smoothing_factor": "objective: label_smoothing does it, with objective_args: {smoothing: 0.1}",
    "average_tokens_across_devices": "a loss is a mean over problems, not over tokens",
    "neftune_noise_alpha": "noise depends on the length of a sequence, and a pass holds several",
    "torch_empty_cache_steps": "passes of bounded size are made instead: see tokens_per_pass",
    "auto_find_batch_size": "passes of bounded size are made instead: see tokens_per_pass",
    "include_num_input_tokens_seen": "num_tokens counts what is learned",
    **dict.fromkeys(("torch_compile", "torch_compile_backend", "torch_compile_mode"), _COMPILING),
    **dict.fromkeys(("bf16_full_eval", "fp16_full_eval", "prediction_loss_only"), _EVALUATING),
    **dict.fromkeys(("per_device_eval_batch_size", "eval_accumulation_steps"), _EVALUATING),
    **dict.fromkeys(("eval_do_concat_batches", "eval_use_gather_object"), _EVALUATING),
    **dict.fromkeys(("include_for_metrics", "batch_eval_metrics", "label_names"), _EVALUATING),
    "train_sampling_strategy": "the order of problems follows seed, data_seed and solved_share",
    **dict.fromkeys(("length_column_name", "remove_unused_columns"), "problems have no columns"),
    "dataloader_drop_last": "every problem is learned in every epoch",
    **dict.fromkeys(("ignore_data_skip", "save_only_model"), "a run could not be resumed exactly"),
    "save_on_each_node": "a run is one directory, which every node has to see",
    "enable_jit_checkpoint": "SIGTERM saves anyway",
    "resume_from_checkpoint": "--resume does that, or train(resume_from_checkpoint=True)",
    "parallelism_config": "processes divide the problems of a step, not a sequence or a layer",
    "logging_nan_inf_filter": "a loss that is not a number stops the run",
}
# Keys that change nothing and promise nothing: of scripts, or of speed that problems in memory do not need.
HARMLESS = {
    *("do_train", "do_eval", "do_predict", "local_rank", "skip_memory_metrics", "hub_always_push"),
    *("use_cache", "dataloader_num_workers", "dataloader_pin_memory", "dataloader_persistent_workers"),
    *("dataloader_prefetch_factor", "dataloader_multiprocessing_context", "dataloader_in_order"),
}
# Optimisers that have to be told when training begins and ends, or the learning rate in a backward pass.
OTHER_OPTIMISERS = ("lomo", "adalomo", "schedule_free")


def check_settings(config: SelfSamplingConfig) -> None:
    """Refuse counts out of range and settings that contradict each other."""
    _check_refused(config)
    _check_counts(config)
    _check_exploring(config)
    _check_length(config)
    _check_model(config)
    # Each of these refuses settings that it cannot be made of.
    _ = config.sampling, config.built_objective, config.built_language
    if config.eval_strategy != "no":
        _check_metric(config, _metric_names(config.evaluation))


def check_device(config: SelfSamplingConfig) -> None:
    """Refuse what the device or the launcher, known last, cannot do."""
    if config.full_determinism and config.device.type == "cuda":
        reason = "drawing needs cumsum, which has no deterministic kernel on CUDA"
        raise ConfigError(f"full_determinism is true, but {reason}; leave it out, or set use_cpu to true")
    version = (config.fsdp_plugin_args or {}).get("fsdp_version", os.environ.get("FSDP_VERSION"))
    used = {"ZeRO-3": getattr(config.deepspeed_plugin, "zero_stage", 0) == 3, "FSDP1": str(version) == "1"}
    for name in (name for name, is_used in used.items() if is_used):
        reason = "takes weights apart after each forward pass, and processes sample at their own pace"
        raise ConfigError(f"{name} {reason}; use configs/accelerate/zero2.yaml or fsdp2.yaml")


def _check_refused(config: SelfSamplingConfig) -> None:
    for f in fields(config):
        if f.name in REFUSED and (value := getattr(config, f.name)) not in (f.default, None, []):
            raise ConfigError(f"{f.name} is {value}, but {REFUSED[f.name]}; leave it out")
    optimiser = str(getattr(config.optim, "value", config.optim))
    if optimiser.startswith(OTHER_OPTIMISERS):
        raise ConfigError(f"optim is {optimiser}, which needs a training step of its own; choose another")


def _check_counts(config: SelfSamplingConfig) -> None:
    least = {f.name: f.metadata.get("least") for f in fields(config)} | {"max_grad_norm": 0, "seed": 0}
    for name, minimum in least.items():
        value = None if minimum is None else getattr(config, name)
        if value is not None and value < minimum:
            raise ConfigError(f"{name} is {value}, expected at least {minimum}")
    if config.seed >= MOST_SEEDS:
        raise ConfigError(f"seed is {config.seed}, expected less than {MOST_SEEDS}")


def _check_exploring(config: SelfSamplingConfig) -> None:
    if config.self_sampling != "none" and config.num_generations == 0:
        raise ConfigError(
            f"self_sampling is {config.self_sampling} but num_generations is 0: nothing would be sampled; "
            "set num_generations to 1 or more, or self_sampling to none"
        )
    if least := config.built_objective.least_samples:
        _check_learned_samples(config, least)
    for name in ("reference_share", "solved_share"):
        if (share := getattr(config, name)) is not None and not 0 <= share <= 1:
            raise ConfigError(f"{name} is {share}, expected a share between 0 and 1")
    _check_looking_back(config)
    _ = config.rules.sequence  # a rule from outside that is not there is an error now, not in a buffer


def _check_looking_back(config: SelfSamplingConfig) -> None:
    """Refuse what cannot go with choices that are made from what the step before found."""
    divides = config.sample_budget != "equal"
    if config.explore_ahead and (divides or config.solved_share is not None):
        name = "sample_budget" if divides else "solved_share"
        raise ConfigError(
            f"{name} is {getattr(config, name)} but explore_ahead is {config.explore_ahead}: what is sampled "
            "depends on what the step before found; set explore_ahead to 0"
        )
    if divides and config.built_objective.least_samples:
        raise ConfigError(
            f"sample_budget is {config.sample_budget}, but {config.objective} compares the samples of a "
            "problem with each other; set sample_budget to equal"
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
    if config.use_liger_kernel and find_spec("liger_kernel") is None:
        raise ConfigError(
            "use_liger_kernel is true but the package liger-kernel is not installed; pip install "
            "liger-kernel, or set it to false"
        )
    strategy = getattr(config.hub_strategy, "value", config.hub_strategy)  # of an enumeration, or its name
    if strategy in ("checkpoint", "all_checkpoints"):
        raise ConfigError(
            f"hub_strategy is {strategy}, but only final/ is uploaded, after training; set it to end"
        )


def _check_learned_samples(config: SelfSamplingConfig, least: int) -> None:
    # Samples of a problem are compared with each other, and a guided one is not one of P(y|x).
    if config.samples_per_problem < least or config.self_sampling != "fcs":
        raise ConfigError(
            f"objective is {config.objective} with {config.num_generations} samples per problem and "
            f"self_sampling {config.self_sampling}; samples of one problem are compared with each other, "
            f"from the start of a solution: set num_generations to {least} or more and self_sampling to fcs"
        )
    if config.explore_ahead:
        raise ConfigError(
            f"explore_ahead is {config.explore_ahead}, but {config.objective} learns from samples of the "
            "weights it changes; set explore_ahead to 0"
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

    def wrong(count: int) -> tuple[Judged, ...]:
        return (Judged(whole("", "", count), False, "", executable=False),) if count else ()

    own = registry.part("metrics", "functions")(plan) if plan.own_metrics else ()
    return [*ProblemResult("", wrong(plan.samples), wrong(plan.pass1_samples)).scores(plan.ks), *own]
