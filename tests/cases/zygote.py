"""Training processes that start in no time: children forked from a process that has imported everything.

`Zygote` asks, this file as a program answers. A child can be told to kill itself at a chosen file operation;
several children can be the processes of one distributed run. A child may also run a whole comparison.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE_EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.truncate", "os.rmdir"}


@dataclass(frozen=True)
class Outcome:
    """How a training process ended (negative: the signal it died of) and, if it lived, what it saw."""

    status: int
    file_operations: int = 0
    buffers: str = ""
    error: str = ""


class Zygote:
    """The asking side."""

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def train(
        self,
        directory: Path,
        *,
        resume: bool = False,
        branch: Path | None = None,
        kill_at: int = 0,
        kill_in: str = "",
        processes: int = 1,
        strategy: str = "ddp",
        dropout: float = 0.1,
        file_limit: int = 0,
        **settings: Any,
    ) -> list[Outcome]:
        """Train in `directory`; one outcome per process.

        With `kill_at`, processes kill themselves at that file operation, counting paths that have `kill_in`.
        With `file_limit`, no file can become larger than so many bytes.
        """
        request = {"directory": str(directory), "resume": resume, "kill_at": kill_at, "kill_in": kill_in}
        request |= {"processes": processes, "strategy": strategy, "dropout": dropout}
        request |= {"file_limit": file_limit, "settings": settings, "branch": branch and str(branch)}
        return self.ask(request)

    def compare(
        self,
        file: Path,
        directory: Path,
        *,
        kill_at: int = 0,
        kill_in: str = "",
        kill_by: int = signal.SIGKILL,
    ) -> Outcome:
        """Run the arms of a comparison one after the other; their numbers are written into the directory."""
        request = {"comparison": str(file), "directory": str(directory), "processes": 1, "file_limit": 0}
        [outcome] = self.ask(request | {"kill_at": kill_at, "kill_in": kill_in, "kill_by": kill_by})
        return outcome

    def ask(self, request: dict[str, Any]) -> list[Outcome]:
        """One outcome per process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return [Outcome(**outcome) for outcome in json.loads(self.process.stdout.readline())]


class Assassin:
    """Counts file operations on certain paths in a directory and signals its own process at one of them."""

    def __init__(self, directory: str, where: str, victim: int, signal: int) -> None:
        self.directory = directory
        self.where = where
        self.victim = victim
        self.signal = signal
        self.count = 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        path = str(arguments[0]) if event in FILE_EVENTS else ""
        if path.startswith(self.directory) and self.where in path:
            self.count += 1
            if self.count == self.victim:
                os.kill(os.getpid(), self.signal)


def work(request: dict[str, Any]) -> dict[str, Any]:
    """Do in this process what is asked."""
    kill_by = request.get("kill_by", signal.SIGKILL)
    assassin = Assassin(request["directory"], request["kill_in"], request["kill_at"], kill_by)
    sys.addaudithook(assassin)
    if limit := request["file_limit"]:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    answer = compare(request) if "comparison" in request else train(request)
    return {**answer, "file_operations": assassin.count}


def compare(request: dict[str, Any]) -> dict[str, Any]:
    """Run every arm, without the processes of `side_by_side`."""
    from partway.arms.experiment import read_experiment
    from partway.arms.outcomes import to_json
    from partway.arms.running import run_arm
    from partway.arms.side_by_side import cells_of

    experiment, directory = read_experiment(Path(request["comparison"]), {}), Path(request["directory"])
    cells = cells_of(experiment)
    numbers = to_json(
        experiment, [run_arm(experiment, *cell, directory, lambda stage: None) for cell in cells]
    )
    for arm in numbers["arms"].values():
        del arm["spent"]["seconds"]
    (directory / "numbers.json").write_text(json.dumps(numbers))
    return {}


def train(request: dict[str, Any]) -> dict[str, Any]:
    """Train as asked."""
    from training_cases import small_trainer

    from partway.runs import Run

    trainer = small_trainer(
        Path(request["directory"]),
        strategy=request["strategy"],
        dropout=request["dropout"],
        **request["settings"],
    )
    branch = Run(Path(request["branch"])) if request["branch"] else None
    trainer.train(resume_from_checkpoint="auto" if request["resume"] else None, branch=branch)
    buffers = json.dumps({key: buffer.to_json() for key, buffer in trainer.buffers.items()})
    return {"buffers": hashlib.sha256(buffers.encode()).hexdigest()}


def start(request: dict[str, Any], environment: dict[str, str]) -> tuple[int, int]:
    """Fork a child that trains; returns its process id and where it will say what it saw."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    answer, status = {}, 1
    try:
        os.environ.update(environment)
        answer, status = work(request), 0
    except BaseException as error:
        traceback.print_exc()
        answer = {"error": f"{type(error).__name__}: {error}"}
    finally:
        os.write(writer, json.dumps(answer).encode())
        sys.stderr.flush()
        os._exit(status)


def outcome(child: int, reader: int) -> dict[str, Any]:
    """Wait for a child."""
    with os.fdopen(reader) as stream:
        answer = stream.read()
    _, status = os.waitpid(child, 0)
    return {"status": os.waitstatus_to_exitcode(status), **json.loads(answer or "{}")}


def environments(processes: int) -> list[dict[str, str]]:
    """What a launcher would set for each of the processes."""
    if processes == 1:
        return [{}]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(processes)}
    common["LOCAL_WORLD_SIZE"] = str(processes)
    return [{**common, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(processes)]


def serve() -> None:
    """Answer requests until the input ends."""
    # Before forking, so that children have it.
    import training_cases  # noqa: F401

    import partway.arms.running  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        children = [start(request, environment) for environment in environments(request["processes"])]
        print(json.dumps([outcome(*child) for child in children]), flush=True)


if __name__ == "__main__":
    serve()
