"""What identifies a run (settings, problems, model), and the check that a resumed run is the same one.

A checkpoint holds the learning rate and the weight decay of its optimiser. If the settings now say others,
these hold from the resumed step on, with the schedule as if they had held from the first step.
"""

from __future__ import annotations

import hashlib
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.optim.lr_scheduler import LambdaLR

from partway.errors import RunError
from partway.language.named import flat
from partway.problem import Problem
from partway.runs import Run
from partway.runs.rows import now, problems_digest
from partway.training.callbacks import RESUME
from partway.training.config import SelfSamplingConfig
from partway.training.impossible import HARMLESS

if TYPE_CHECKING:
    from partway.training.trainer import SelfSamplingTrainer

SAMPLED_VALUES = 4096  # of each weight: to read all values of a large model takes minutes
GROUP_SETTINGS = ("initial_lr", "weight_decay", "betas", "eps")
LENGTHS = ("max_steps", "num_train_epochs")

# Settings that change where and how a run is kept, not what it computes.
FREE_SETTINGS = {
    *("output_dir", "run_name", "project", "report_to", "log_level", "disable_tqdm"),
    *("save_steps", "save_strategy", "save_total_limit", *HARMLESS),
    *("push_to_hub", "hub_model_id", "hub_strategy", "hub_private_repo", "hub_revision"),
    *("engine", "engine_timeout", "weight_sync", "weight_sync_steps", "explore_ahead", "sampling_memory"),
    *("per_device_train_batch_size", "gradient_accumulation_steps", "ddp_timeout", "ddp_backend"),
}


def group_settings(optimizer: Any) -> list[dict[str, Any]]:
    """What the settings say about each group of weights, before a checkpoint is loaded."""
    return [{key: group[key] for key in GROUP_SETTINGS if key in group} for group in optimizer.param_groups]


def apply_settings(optimizer: Any, scheduler: Any, settings: Sequence[Mapping[str, Any]]) -> None:
    """Put `settings` in place of those that came with a checkpoint; the learning rate follows."""
    for group, wanted in zip(optimizer.param_groups, settings, strict=True):
        group.update(wanted)
    if isinstance(scheduler, LambdaLR):  # the schedules that follow a plan; others follow the losses
        scheduler.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        for group, factor in zip(optimizer.param_groups, scheduler.lr_lambdas, strict=True):
            group["lr"] = group["initial_lr"] * factor(scheduler.last_epoch)


def is_longer(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether `new` settings ask for more of the same run than `old` ones did."""
    # More of one length and none shorter: fewer steps of more epochs would be another run.
    pairs = [(old.get(key), new.get(key)) for key in LENGTHS]
    return any(_is_more(before, now) for before, now in pairs) and not any(
        before != now and not _is_more(before, now) for before, now in pairs
    )


def _is_more(before: Any, now: Any) -> bool:
    # -1 means "not counted this way", so it is neither more nor less.
    return all(isinstance(n, (int, float)) and n > 0 for n in (before, now)) and now > before


def check_same_run(run: Run, settings: Mapping[str, Any], environment: Mapping[str, Any]) -> None:
    """Refuse to continue `run` with other settings, problems or another model, naming the difference."""
    longer = LENGTHS if is_longer(run.config, settings) else ()
    differences = [
        change
        for key, change in changes(run.config, settings).items()
        if key not in (*FREE_SETTINGS, *longer)
    ]
    differences += other_material(run, environment)
    if differences:
        raise RunError(
            f"{run.directory}: cannot resume, this is not the same run: {'; '.join(differences)}; "
            "undo the change, start in another output_dir, or --force"
        )


def other_material(run: Run, environment: Mapping[str, Any]) -> list[str]:
    """Which of the problems and the model are not those of `run`."""
    try:
        return _differences(run.environment, environment)
    except (LookupError, TypeError) as error:
        raise RunError(
            f"{run.directory}: its environment is not as it was written ({error!r}); put it back, or --force"
        ) from None


def _differences(before: Mapping[str, Any], environment: Mapping[str, Any]) -> list[str]:
    differences = [
        f"{key.replace('_', ' ')} was {before[key]}, is {environment[key]}"
        for key in ("problems_per_step", "precision")
        if before[key] != environment[key]
    ]
    for name, key in (("training problems", "train"), ("evaluation problems", "dev")):
        if before["data"][key] != environment["data"][key]:
            differences.append(
                f"the {name} are others ({_count(before, key)} then, {_count(environment, key)} now)"
            )
    if before["model"]["sha256"] != environment["model"]["sha256"]:
        differences.append(f"the model before training is another ({before['model']['name']} then)")
    if environment.get("chat_template") and not before.get("chat_template"):
        differences.append("the model was asked plainly, is asked through its chat template")
    return differences


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """By key, what is different in `new` settings; what settings do not say has its default."""
    old, new = flat(old), flat(new)
    before, now = with_defaults(old), with_defaults(new)
    return {
        key: f"{key} was {before.get(key)!r}, is {now.get(key)!r}"
        for key in sorted(old.keys() | new.keys())
        if before.get(key) != now.get(key)
    }


def with_defaults(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, and the defaults of those that are not among them."""
    # Of transformers' own settings, a run saves those that are not the defaults.
    usual = {f.name: f.default for f in fields(SelfSamplingConfig) if f.default is not MISSING}
    return usual | dict(settings)


def _count(environment: Mapping[str, Any], split: str) -> int:
    data = environment["data"][split]
    return data["problems"] if data else 0


def model_digest(model: Any) -> str:
    """A fingerprint of names, shapes and a sample of the values of all weights."""
    hasher = hashlib.sha256()
    for name, weight in model.named_parameters():
        stride = max(1, weight.numel() // SAMPLED_VALUES)
        # As doubles: NumPy has no bfloat16, and every smaller type fits without rounding.
        values = weight.detach().reshape(-1)[::stride].cpu().double().numpy()
        hasher.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
        hasher.update(values.tobytes())
    return hasher.hexdigest()


def environment_of(trainer: SelfSamplingTrainer) -> dict[str, Any]:
    """Versions, machine, seed and fingerprints: the content of environment.json."""
    config, model = trainer.args, trainer.model
    train, dev = trainer.train_dataset, trainer.eval_dataset
    packages = ("partway", "torch", "transformers", "accelerate")
    return {
        "python": platform.python_version(),
        **{package: _version(package) for package in packages},
        "platform": platform.platform(),
        "device": config.device.type,
        "precision": config.mixed_precision,  # may be the launcher's
        "processes": config.world_size,
        "problems_per_step": config.problems_per_step,
        "command": " ".join(sys.argv),
        "seed": config.seed,
        "started": now(),
        # One entry for every time it goes on after a stop.
        "resumed": [],
        "data": {"train": _data_identity(train), "dev": _data_identity(dev) if dev else None},
        "model": {
            "name": config.model_name_or_path,
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "sha256": model_digest(model),
        },
        "layout": trainer.scorer.layout.name,
        "chat_template": trainer.codec.question.is_markup,
    }


def _data_identity(problems: Sequence[Problem]) -> dict[str, Any]:
    return {"problems": len(problems), "sha256": problems_digest(problems)}


def _version(package: str) -> str:
    if package == "partway":  # may run from a checkout that was never installed
        from partway import __version__

        return __version__
    return version(package)


def check_free(directory: Path) -> None:
    """Refuse a directory that holds a run already."""
    if Run(directory).is_started:
        raise RunError(
            f"{directory}: there is a run already; {RESUME} to go on with it, or choose another output_dir"
        )


def check_started(directory: Path) -> None:
    """Refuse to go on with a run that is not there."""
    if not Run(directory).is_started:
        raise RunError(
            f"{directory}: there is no run to resume; leave --resume out to start one, "
            "or use --resume auto for either"
        )


def check_writable(directory: Path) -> None:
    """Refuse a directory in which no file can be made."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # Trying is the only sure way: permissions do not tell of a read-only disk.
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise RunError(
            f"{directory}: cannot be written ({error.strerror}); choose another output_dir"
        ) from error
