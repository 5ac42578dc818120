"""Checkpoints: complete or absent, known to be whole or damaged, continued only by the run they belong to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from partway.errors import RunError
from partway.files import atomic_directory
from partway.runs import Run, read_json
from partway.runs.digests import file_digest
from partway.training.config import SelfSamplingConfig
from partway.training.resuming import LENGTHS, is_longer

MANIFEST = "manifest.json"
PROGRESS = "progress.json"

# Settings that change where and how a run is kept, not what it computes.
FREE_SETTINGS = {
    *("output_dir", "run_name", "project", "report_to", "log_level", "disable_tqdm"),
    *("save_steps", "save_strategy", "save_total_limit", "dataloader_num_workers"),
    *("push_to_hub", "hub_model_id", "hub_strategy", "hub_private_repo", "hub_revision"),
    *("per_device_train_batch_size", "gradient_accumulation_steps", "ddp_timeout", "ddp_backend"),
}


@dataclass(frozen=True)
class RunProgress:
    """What a checkpoint adds to the weights, the optimiser and the buffers: how far the run is."""

    step: int
    ended: bool
    last_logged: int
    total_loss: float
    num_tokens: int
    ledger: Mapping[str, Any]
    files: Mapping[str, int] = field(default_factory=dict)

    def write(self, directory: Path) -> None:
        """Save in a checkpoint directory."""
        (directory / PROGRESS).write_text(json.dumps(vars(self), indent=2), encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> RunProgress:
        """What `write` saved."""
        try:
            return cls(**read_json(directory / PROGRESS))
        except TypeError as error:
            raise RunError(f"{directory / PROGRESS}: not as it was written ({error})") from None


@contextmanager
def new_checkpoint(path: Path) -> Iterator[Path]:
    """A directory to fill; under the name `path` it appears complete, with a manifest."""
    with atomic_directory(path) as directory:
        yield directory
        sizes = {
            file.relative_to(directory).as_posix(): {
                "bytes": file.stat().st_size,
                "sha256": file_digest(file),
            }
            for file in sorted(directory.rglob("*"))
            if file.is_file()
        }
        (directory / MANIFEST).write_text(json.dumps(sizes, indent=2), encoding="utf-8")


def flaw(directory: Path) -> str | None:
    """What is wrong with a checkpoint, None if every file is as it was written."""
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        expectations = {name: (row["bytes"], row["sha256"]) for name, row in manifest.items()}
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        return f"{MANIFEST} cannot be read ({error.__class__.__name__})"
    for name, (size, sha256) in expectations.items():
        file = directory / name
        if not file.is_file():
            return f"{name} is missing"
        if file.stat().st_size != size:
            return f"{name} has {file.stat().st_size} bytes, expected {size}"
        if file_digest(file) != sha256:
            return f"{name} is not as it was written (its SHA-256 differs)"
    return None


def last_good(run: Run) -> tuple[Path | None, list[str]]:
    """The newest checkpoint that is whole, and a remark for each newer one that is not."""
    remarks: list[str] = []
    for directory in reversed(run.checkpoints().values()):
        if (reason := flaw(directory)) is None:
            return directory, remarks
        remarks.append(f"{directory.name} is damaged: {reason}")
    return None, remarks


def check_same_run(run: Run, settings: Mapping[str, Any], environment: Mapping[str, Any]) -> None:
    """Refuse to continue `run` with other settings, problems or another model, naming the difference."""
    longer = LENGTHS if is_longer(run.config, settings) else ()
    differences = [
        change
        for key, change in changes(run.config, settings).items()
        if key not in (*FREE_SETTINGS, *longer)
    ]
    try:
        differences += _differences(run.environment, environment)
    except (LookupError, TypeError) as error:
        raise RunError(
            f"{run.directory}: its environment is not as it was written ({error!r}); put it back, or --force"
        ) from None
    if differences:
        raise RunError(
            f"{run.directory}: cannot resume, this is not the same run: {'; '.join(differences)}; "
            "undo the change, start in another output_dir, or --force"
        )


def _differences(before: Mapping[str, Any], environment: Mapping[str, Any]) -> list[str]:
    """What the problems and the model of a run are not, compared with those it had."""
    differences = []
    if before["problems_per_step"] != environment["problems_per_step"]:
        differences.append(
            f"problems per step were {before['problems_per_step']}, are {environment['problems_per_step']}"
        )
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
    usual = {f.name: f.default for f in fields(SelfSamplingConfig) if f.default is not MISSING}
    before, now = usual | dict(old), usual | dict(new)
    return {
        key: f"{key} was {before.get(key)!r}, is {now.get(key)!r}"
        for key in sorted(old.keys() | new.keys())
        if before.get(key) != now.get(key)
    }


def _count(environment: Mapping[str, Any], split: str) -> int:
    data = environment["data"][split]
    return data["problems"] if data else 0
