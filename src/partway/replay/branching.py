"""A run begins with the steps that another made before its first sample, so shared steps are made once.

Until its first sample a run learns references and nothing else, whatever it will sample later, keep of that
and make of it. So arms that differ only in this have the same weights up to `sampling_start_step`, bit for
bit, and all but one of them may begin from a checkpoint of that one.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from partway.errors import RunError
from partway.objectives import TABLE_1
from partway.runs import Run
from partway.runs.checkpoints import RunProgress, flaw, seal
from partway.runs.run import MANIFEST
from partway.training.config import SelfSamplingConfig
from partway.training.resuming import FREE_SETTINGS, changes, other_material, with_defaults
from partway.training.shared_buffers import Buffers

# What is sampled, what is kept of it and how it is learned.
LATER_SETTINGS = {
    *("self_sampling", "sampling_start_step", "num_generations", "sample_budget"),
    *("temperature", "top_p", "top_k", "partial_solutions", "solutions_per_step", "buffer_sync_steps"),
    *("state", "dedup", "length_tolerance", "max_solutions_per_problem", "length_limit"),
    *("dead_ends", "spurious", "added_rules"),
}
# Each objective of Table 1 is MLE while the reference is all there is.
LATER_OBJECTIVES = {"objective", "objective_args"}


def branch(
    source: Run, args: SelfSamplingConfig, environment: Mapping[str, Any]
) -> tuple[Path, Callable[[Run, Buffers], Path]]:
    """The checkpoint to begin with, and what gives its steps to a new run."""
    shared = last_shared(source, args, environment)
    return shared, partial(take_over, shared)


def last_shared(source: Run, args: SelfSamplingConfig, environment: Mapping[str, Any]) -> Path:
    """The last checkpoint of `source` that a run with these settings would have, too."""
    _check_same_beginning(source, args, environment)
    last = min(_steps_before_sampling(source.config), _steps_before_sampling(args.settings))
    there = source.checkpoints()
    for step, checkpoint in reversed(there.items()):
        if step <= last and flaw(checkpoint) is None:
            return checkpoint
    raise RunError(
        f"{source.directory}: cannot branch from it, no good checkpoint is from before the first sample at "
        f"step {last + 1} (there are {', '.join(path.name for path in there.values()) or 'none'}); "
        "save more of them with save_steps and save_total_limit, or start without --branch"
    )


def take_over(last: Path, run: Run, buffers: Buffers) -> Path:
    """Give `run` all that it would have by now if it had made the steps up to checkpoint `last` itself."""
    source, progress = Run(last.parent), RunProgress.read(last)
    run.take_over(source, progress.step, progress.files)
    best = source.best_checkpoint(last) or last  # it may become the final model
    # The last one last: without it, a run that is killed in here begins earlier, to the same end.
    for checkpoint in dict.fromkeys((best, last)):
        directory = run.directory / checkpoint.name
        shutil.copytree(checkpoint, directory, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MANIFEST))
        buffers.write(directory)  # by its own rules; so far they hold what they began with
        seal(directory)
    return run.checkpoint(progress.step)


def _steps_before_sampling(settings: Mapping[str, Any]) -> float:
    known = with_defaults(settings)
    return math.inf if known["self_sampling"] == "none" else known["sampling_start_step"]


def _check_same_beginning(source: Run, args: SelfSamplingConfig, environment: Mapping[str, Any]) -> None:
    later = FREE_SETTINGS | LATER_SETTINGS
    objectives = {with_defaults(source.config)["objective"], args.objective}
    if objectives <= TABLE_1.keys() and args.buffer_file is None:
        later |= LATER_OBJECTIVES
    changed = changes(source.config, args.settings).items()
    differences = [change for key, change in changed if key not in later]
    differences += other_material(source, environment)
    if differences:
        raise RunError(
            f"{source.directory}: cannot branch from it, the first steps are not the same: "
            f"{'; '.join(differences)}; undo the change, or start without --branch"
        )
