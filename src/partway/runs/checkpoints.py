"""Checkpoints: complete or absent, known to be whole or damaged, with what says how far the run is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from partway.errors import RunError
from partway.files import atomic_directory
from partway.runs.digests import file_digest
from partway.runs.rows import read_json
from partway.runs.run import Run

MANIFEST = "manifest.json"
PROGRESS = "progress.json"


@dataclass(frozen=True)
class RunProgress:
    """What a checkpoint adds to the weights, the optimiser and the buffers: how far the run is."""

    step: int
    ended: bool
    last_logged: int
    total_loss: float
    num_tokens: int
    ledger: Mapping[str, Any]
    files: Mapping[str, int] = field(default_factory=dict)  # how long each growing file of the run is

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
        # Last: `flaw` takes a directory without one for half a checkpoint.
        (directory / MANIFEST).write_text(json.dumps(sizes, indent=2), encoding="utf-8")


def flaw(directory: Path) -> str | None:
    """What is wrong with a checkpoint, None if every file is as it was written."""
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        expectations = {name: (row["bytes"], row["sha256"]) for name, row in manifest.items()}
    # A manifest can be damaged in any way; whatever it is, the checkpoint is not to be trusted.
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        return f"{MANIFEST} cannot be read ({error.__class__.__name__})"
    for name, (size, sha256) in expectations.items():
        file = directory / name
        if not file.is_file():
            return f"{name} is missing"
        if file.stat().st_size != size:
            return f"{name} has {file.stat().st_size} bytes, expected {size}"
        if file_digest(file) != sha256:  # last: it reads the whole file, which may be gigabytes
            return f"{name} is not as it was written (its SHA-256 differs)"
    return None


def last_good(run: Run) -> tuple[Path | None, list[str]]:
    """The newest checkpoint that is whole, and a remark for each newer one that is not."""
    remarks: list[str] = []
    # Digests take time for large files, so only as many are read as it takes to find a whole one.
    for directory in reversed(run.checkpoints().values()):
        if (reason := flaw(directory)) is None:
            return directory, remarks
        remarks.append(f"{directory.name} is damaged: {reason}")
    return None, remarks
