"""One worker process seen from outside: started from a clean environment, spoken to through a socket."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from stepbox.channel import FrameReader, frame
from stepbox.results import BoxError, WeakBox
from stepbox.walls import ACTIVE, LANDLOCK, SECCOMP
from stepbox.wire import WireError

START_SECONDS = 30.0
RISK = "a program could read, change or delete your files and run commands as you"

_PACKAGE = Path(__file__).resolve().parent
# The package's modules without its __init__: a worker imports a few, and the standard library.
# Nothing is to happen in a forked child by itself; `random` would seed itself anew.
_BOOT = """
import os, sys, types
os.register_at_fork = lambda **functions: None
sys.modules["stepbox"] = types.ModuleType("stepbox")
sys.modules["stepbox"].__path__ = sys.argv[1:]
from stepbox.worker import main
main()
"""
# With LD_BIND_NOW the loader is done before the first fork, not again in each child.
_SETTINGS = {"LC_ALL": "C.UTF-8", "LD_BIND_NOW": "1"}
# Nothing of the user's: no site packages, no current folder; no byte code is written, no warning printed.
_FLAGS = ("-s", "-S", "-P", "-B", "-W", "ignore")


class WorkerProcess:
    """One worker process and the socket to it.

    `program` is a file whose `main` serves the requests, if not `worker.py`; as a module of this package it
    may import others of it and the standard library.
    """

    def __init__(self, hash_seed: int = 0, program: Path = _PACKAGE / "worker.py") -> None:
        if sys.platform == "win32":
            raise BoxError("programs need Linux or macOS to run safely; try it inside WSL")
        self.socket, theirs = socket.socketpair()
        self.reader = FrameReader()
        self.payloads: deque[bytes] = deque()
        with theirs:
            self.process = self.start(theirs, hash_seed, program)
        self.protections: dict[str, str] = {}

    def start(self, channel: socket.socket, hash_seed: int, program: Path) -> subprocess.Popen[bytes]:
        kept = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME")  # where the interpreter itself is
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        boot = _BOOT.replace("stepbox.worker", f"stepbox.{program.stem}")
        try:
            return subprocess.Popen(
                [sys.executable, *_FLAGS, "-c", boot, str(_PACKAGE), str(program.parent)],
                stdin=channel.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment | _SETTINGS | {"PYTHONHASHSEED": str(hash_seed)},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            self.socket.close()
            raise unusable(error.strerror or str(error)) from None

    def greet(self) -> None:
        """Wait until the worker has put up its walls."""
        try:
            hello = self.next_payload(time.monotonic() + START_SECONDS)
        except (OSError, EOFError, WireError) as error:
            self.kill()
            complaint = self.process.stderr.read() if self.process.stderr else b""
            self.close()
            last = complaint.decode(errors="replace").strip().rpartition("\n")[2]
            raise unusable(last or f"{type(error).__name__}: {error}") from None
        if self.process.stderr:
            self.process.stderr.close()
        self.protections = json.loads(hello[1:])

    def check_walls(self, allow_weak: bool) -> None:
        """Refuse to run programs where the kernel would not stop one that gets past the screen."""
        walls = {name: self.protections.get(name, "unknown") for name in (SECCOMP, LANDLOCK)}
        if allow_weak or all(state == ACTIVE for state in walls.values()):
            return
        states = ", ".join(f"{name}: {state}" for name, state in walls.items())
        raise WeakBox(f"no program is run on this system, whose kernel would not stop it ({states}): {RISK}")

    def send(self, request: object, descriptors: Sequence[int] = ()) -> None:
        """Send a request with what it needs; requests are short, so that they go in one piece."""
        self.socket.settimeout(START_SECONDS)
        socket.send_fds(self.socket, [frame(json.dumps(request).encode())], descriptors)

    def next_payload(self, deadline: float) -> bytes:
        while not self.payloads:
            self.socket.settimeout(max(0.01, deadline - time.monotonic()))
            self.receive()
        return self.payloads.popleft()

    def receive(self) -> None:
        """Take what has arrived; EOFError if the worker is gone."""
        data = self.socket.recv(1 << 16)
        if not data:
            raise EOFError("it ended")
        self.payloads.extend(self.reader.feed(data))

    def kill(self) -> None:
        with contextlib.suppress(PermissionError):  # another user by now; it goes when its socket closes
            self.process.kill()

    def close(self, patience: float = 0.0) -> None:
        """Hang up, upon which a worker ends itself; kill it if it does not."""
        self.socket.close()
        if self.process.stderr:
            self.process.stderr.close()
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()
            self.process.wait()

    def abandon(self) -> None:
        """Forget a worker that belongs to the process this one was forked from."""
        self.socket.close()
        self.process.returncode = 0  # else it would be waited for, which only its parent can do


def unusable(reason: str) -> BoxError:
    """The error for a machine on which no program can be run safely."""
    return BoxError(
        f"no isolated worker can be started ({reason}); check the limits on processes and memory "
        "(ulimit -u, ulimit -v) and that this Python runs"
    )
