"""Checkpoints: one is complete when it has its manifest, which also tells whether its files are damaged.

Only one trainer writes a run directory: it holds a lock, which the system releases when the process dies.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from partway.errors import RunError
from partway.files import atomic_writer
from partway.runs.rows import file_digest, now, numbered, read_json, synced_size
from partway.runs.run import CHECKPOINTS, MANIFEST, Run

PROGRESS = "progress.json"
NAMED = 3  # damaged checkpoints that an error names one by one


@dataclass(frozen=True)
class RunProgress:
    """What a checkpoint adds to the weights, the optimiser and the buffers: how far the run is."""

    step: int
    ended: bool
    last_logged: int
    total_loss: float
    num_tokens: int
    ledger: Mapping[str, Any]
    drawn: Mapping[str, int] = field(default_factory=dict)  # samples by problem id
    turns: Sequence[int] = ()  # by problem, its last turn in an order that depends on what is solved
    files: Mapping[str, int] = field(default_factory=dict)  # how long each growing file of the run is

    def write(self, directory: Path) -> None:
        """Save in a checkpoint directory."""
        (directory / PROGRESS).write_text(json.dumps(vars(self)), encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> RunProgress:
        """What `write` saved."""
        try:
            return cls(**read_json(directory / PROGRESS))
        except TypeError as error:
            raise RunError(f"{directory / PROGRESS}: not as it was written ({error})") from None


def seal(directory: Path) -> None:
    """Make a directory that is filled a checkpoint: all of it on disk, then the manifest."""
    (directory / MANIFEST).unlink(missing_ok=True)  # an old one must not be listed as a file
    files = [file for file in sorted(directory.rglob("*")) if file.is_file()]
    sizes = {
        file.relative_to(directory).as_posix(): {"bytes": synced_size(file), "sha256": file_digest(file)}
        for file in files
    }
    with atomic_writer(directory / MANIFEST) as stream:
        json.dump(sizes, stream, indent=2)


def remove_unsealed(run: Run) -> None:
    """Remove checkpoints that a killed process left half-written."""
    made = _made(run)
    for _, directory in numbered(run.directory, CHECKPOINTS):
        if directory not in made:
            shutil.rmtree(directory, ignore_errors=True)


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


def last_good(run: Run, *, force: bool = False) -> tuple[Path | None, list[str]]:
    """The newest whole checkpoint, None before the first, and a remark for each newer one that is damaged.

    A run that has lost all of them is not begun again: that is a RunError, and nothing was touched. With
    `force`, the newest one that has lost its manifest is taken as it is.
    """
    remarks: list[str] = []
    unchecked: list[Path] = []
    # Digests take time for large files, so only as many are read as it takes to find a whole one.
    for directory in reversed(_made(run)):
        if (reason := flaw(directory)) is None:
            return directory, remarks
        remarks.append(f"{directory.name} is damaged: {reason}")
        if reason.startswith(MANIFEST) and (directory / PROGRESS).is_file():
            unchecked.append(directory)
    if force and unchecked:
        seal(unchecked[0])
        return unchecked[0], remarks
    if remarks or run.is_finished:
        forced = f", or --force to go on from {unchecked[0].name} as it is" if unchecked else ""
        advice = f"put back what is lost, or start in another output_dir{forced}"
        raise RunError(f"{run.directory}: cannot resume, {_loss(remarks)}; {advice}")
    return None, []


def _made(run: Run) -> list[Path]:
    """Checkpoints that are complete, or were, in order."""
    found, whole = dict(numbered(run.directory, CHECKPOINTS)), run.checkpoints()
    if len(found) == len(whole):
        return list(whole.values())
    # A killed process leaves one without a manifest, and nothing after it. Otherwise manifests were lost.
    end = max(run.last_step(), *found)
    was_lost = any(step not in whole and step < end for step in found)
    return list((found if was_lost else whole).values())


def _loss(remarks: Sequence[str]) -> str:
    if not remarks:
        return "it has ended, and its checkpoints are gone"
    others = f" (and {len(remarks) - NAMED} more)" if len(remarks) > NAMED else ""
    return f"no checkpoint is whole: {'; '.join(remarks[:NAMED])}{others}"


LOCK = ".lock"


@contextmanager
def writing_alone(directory: Path, warn: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a run directory; RunError if another living process holds it.

    The lock is on the open file, so it ends with its holder, also one that was killed. Its text only says
    to a reader who that is.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path, lock = directory / LOCK, FileLock(directory / LOCK, blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise RunError(
            f"{directory}: another process is training in it ({_holder(path)}); wait for it or stop it, "
            "or choose another output_dir"
        ) from None
    except (OSError, NotImplementedError) as error:  # of network file systems that cannot lock
        warn(f"{directory} cannot be locked ({error}): see to it that one process trains in it")
    try:
        with suppress(OSError):  # Windows lets nobody else write what is locked, nor remove it
            path.write_text(f"process {os.getpid()} on {platform.node()} since {now()}\n", encoding="utf-8")
        yield
    finally:
        with suppress(OSError):
            path.unlink()  # before the lock is released, so that it is not another process's file
        lock.release()


def _holder(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")[:200].strip() or "just begun"
    except OSError:
        return "just ending"
