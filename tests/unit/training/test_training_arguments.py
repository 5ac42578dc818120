"""Every key of transformers' TrainingArguments works here, changes nothing, or is refused in one line."""

from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest
from transformers import TrainingArguments

from partway.errors import ConfigError
from partway.training import SelfSamplingConfig
from partway.training.config import own_fields
from partway.training.impossible import HARMLESS, REFUSED, check_device

# What Trainer, Accelerate or a callback reads, whatever a training step does. A key that is in no table, such
# as one of a newer transformers, fails below: read what Trainer does with it, then enter it.
WORKS = {
    *("num_train_epochs", "lr_scheduler_type", "lr_scheduler_kwargs", "optim", "optim_args", "adam_beta1"),
    *("adam_beta2", "adam_epsilon", "optim_target_modules", "gradient_accumulation_steps", "max_grad_norm"),
    *("bf16", "fp16", "tf32", "gradient_checkpointing", "gradient_checkpointing_kwargs"),
    *("activation_checkpointing", "activation_checkpointing_kwargs"),  # their names since 5.23
    *("use_liger_kernel", "liger_kernel_config", "full_determinism", "seed", "data_seed", "debug"),
    *("logging_strategy", "logging_first_step", "log_on_each_node", "log_level", "log_level_replica"),
    *("disable_tqdm", "report_to", "run_name", "project"),
    *("trackio_space_id", "trackio_bucket_id", "trackio_static_space_id"),
    *("eval_delay", "eval_on_start", "greater_is_better", "save_strategy"),
    *("push_to_hub", "hub_token", "hub_private_repo", "hub_model_id", "hub_strategy", "hub_revision"),
    *("ddp_bucket_cap_mb", "ddp_broadcast_buffers", "ddp_static_graph", "ddp_backend", "ddp_timeout"),
    *("accelerator_config", "fsdp", "fsdp_config", "deepspeed"),
}
OTHERWISE: dict[str, Any] = {  # values of keys whose default is neither a bool nor a number
    "torch_compile_backend": "inductor",
    "torch_compile_mode": "default",
    "include_for_metrics": ["inputs"],
    "label_names": ["labels"],
    "include_num_input_tokens_seen": "all",
    "train_sampling_strategy": "group_by_length",
    "length_column_name": "size",
    "resume_from_checkpoint": "run/checkpoint-5",
    "parallelism_config": {"cp_size": 2},
    "dataloader_multiprocessing_context": "spawn",
    "neftune_noise_alpha": 5.0,
}
OWN = {f.name for f in own_fields()}
KEYS = [f for f in fields(TrainingArguments) if f.init]


def other_value(key: str) -> Any:
    (default,) = (f.default for f in fields(SelfSamplingConfig) if f.name == key)
    if key in OTHERWISE:
        return OTHERWISE[key]
    return not default if isinstance(default, bool) else (default or 0) + 1


def config(tmp_path, **settings: Any) -> SelfSamplingConfig:
    return SelfSamplingConfig(**{"output_dir": str(tmp_path), "use_cpu": True, **settings})


@pytest.mark.parametrize("key", [f.name for f in KEYS])
def test_every_key_is_in_one_table(key):
    tables = [key in WORKS, key in HARMLESS, key in REFUSED]
    assert tables.count(True) == 1 or (key in OWN and not any(tables))


@pytest.mark.parametrize("key", sorted(REFUSED))
def test_what_has_no_effect_is_refused_by_name(tmp_path, key):
    with pytest.raises(ConfigError, match=f"^{key} is .*, but .*; leave it out$"):
        config(tmp_path, **{key: other_value(key)})


@pytest.mark.parametrize("key", sorted(HARMLESS - {"local_rank", "dataloader_prefetch_factor"}))
def test_what_changes_nothing_is_taken(tmp_path, key):
    config(tmp_path, **{key: other_value(key)})


@pytest.mark.parametrize("name", ["lomo", "schedule_free_adamw"])
def test_optimisers_that_need_another_step_are_refused(tmp_path, name):
    with pytest.raises(ConfigError, match=f"optim is {name}, which needs a training step of its own"):
        config(tmp_path, optim=name)


def test_of_several_gpus_a_process_uses_one(tmp_path, monkeypatch):
    monkeypatch.setattr(TrainingArguments, "n_gpu", property(lambda _: 2))
    assert config(tmp_path).n_gpu == 1


def test_zero_3_is_refused_with_the_reason(tmp_path):
    args = config(tmp_path)
    args.deepspeed_plugin = SimpleNamespace(zero_stage=2)
    check_device(args)
    args.deepspeed_plugin.zero_stage = 3
    with pytest.raises(ConfigError, match="ZeRO-3 takes weights apart after each forward pass"):
        check_device(args)


def test_fsdp_of_the_first_version_is_refused_with_the_reason(tmp_path, monkeypatch):
    args = config(tmp_path)
    monkeypatch.setenv("FSDP_VERSION", "2")  # as accelerate launch sets it
    check_device(args)
    monkeypatch.setenv("FSDP_VERSION", "1")
    with pytest.raises(ConfigError, match=r"FSDP1 takes weights apart .* fsdp2.yaml"):
        check_device(args)
