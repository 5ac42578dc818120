"""One trainer per run directory: whoever writes it holds its lock, which the system takes from the dead."""

from __future__ import annotations

import errno
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from partway.errors import RunError
from partway.runs.rows import now

LOCK = ".lock"
# Network file systems that cannot lock: training goes on, with a warning.
UNSUPPORTED = {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}


@contextmanager
def writing_alone(directory: Path, warn: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a run directory; RunError if another living process holds it.

    The lock is on the open file, so it ends with its holder, also one that was killed. Its text only says
    to a reader who that is.
    """
    path = directory / LOCK
    try:
        stream = _locked(path)
    except BlockingIOError:
        raise RunError(
            f"{directory}: another process is training in it ({_holder(path)}); wait for it or stop it, "
            "or choose another output_dir"
        ) from None
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise RunError(
                f"{path}: cannot be locked ({error.strerror}); choose another output_dir"
            ) from error
        warn(f"{directory} cannot be locked on this file system: see to it that one process trains in it")
        yield
        return
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is still locked: nobody else can believe to hold it
        stream.close()


def _locked(path: Path) -> TextIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        stream = path.open("a+", encoding="utf-8")
        try:
            _lock(stream)
            # Its last holder may have removed it between our opening and locking it: then ours is no file.
            if _is_still(path, stream):
                stream.truncate(0)
                stream.write(f"process {os.getpid()} on {platform.node()} since {now()}\n")
                stream.flush()
                return stream
        except BaseException:
            stream.close()
            raise
        stream.close()


if sys.platform == "win32":

    def _lock(stream: TextIO) -> None:
        """Nothing is locked on Windows."""

else:
    import fcntl

    def _lock(stream: TextIO) -> None:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_still(path: Path, stream: TextIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(stream.fileno()))
    except FileNotFoundError:
        return False


def _holder(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")[:200].strip() or "just begun"
    except OSError:
        return "just ending"
