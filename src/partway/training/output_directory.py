"""Whether a directory can be a run's: free for a new one, with one to go on with, and writable."""

from __future__ import annotations

import tempfile
from pathlib import Path

from partway.errors import RunError
from partway.runs import Run


def check_free(directory: Path) -> None:
    """Refuse a directory that holds a run already."""
    if Run(directory).is_started:
        raise RunError(
            f"{directory}: there is a run already; --resume to go on with it, or choose another output_dir"
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
