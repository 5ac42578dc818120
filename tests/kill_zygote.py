"""Trains in forked children that kill themselves at a chosen file operation; one JSON request per input line.

A request says where to train, whether to resume, and at which file operation to send SIGKILL (0: never). The
answer has the child's wait status and, if it lived, how many file operations it made. Importing takes most of
the time, forking next to none.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from training_cases import small_trainer

FILE_EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.truncate", "os.rmdir"}


class Assassin:
    """Counts file operations inside a directory and kills its own process at one of them."""

    def __init__(self, directory: str, victim: int) -> None:
        self.directory = directory
        self.victim = victim
        self.count = 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in FILE_EVENTS and str(arguments[0]).startswith(self.directory):
            self.count += 1
            if self.count == self.victim:
                os.kill(os.getpid(), signal.SIGKILL)


def train(request: dict[str, Any]) -> int:
    """Train as asked; returns the number of file operations."""
    assassin = Assassin(request["directory"], request["kill_at"])
    sys.addaudithook(assassin)
    trainer = small_trainer(Path(request["directory"]), **request.get("settings", {}))
    trainer.train(resume_from_checkpoint=request["resume"])
    return assassin.count


def serve() -> None:
    """Answer requests until the input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.write(writer, str(train(request)).encode())
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        os.close(writer)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reader) as stream:
            print(
                json.dumps({"status": os.waitstatus_to_exitcode(status), "count": stream.read()}), flush=True
            )


if __name__ == "__main__":
    serve()
