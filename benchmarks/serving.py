"""Inference servers on loopback, started for a benchmark or a test and ended with it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

SECONDS_TO_START = 900  # vLLM takes a minute on an idle machine

Started = tuple[subprocess.Popen[bytes], str]  # a process and the address it answers at


@contextmanager
def transformers_serve(log: Path, *words: str) -> Iterator[Started]:
    """`transformers serve` of this environment; without `words`, it is started without a model."""
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", *map(str, words)]
    command += ["--host", "127.0.0.1", "--port", "0", "--device", "cpu"]
    with _running(command, log, {"PYTHONUNBUFFERED": "1"}) as process:
        yield process, _when_healthy("transformers serve", process, log, lambda: _said_address(log))


@contextmanager
def vllm_serve(python: str, model: Path, log: Path, *words: str) -> Iterator[Started]:
    """vLLM of the environment of `python`, in its developer mode, on the CPU."""
    port = _free_port()
    settings = {
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",  # gigabytes
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "3000",  # on a machine with other work to do
        "TORCHDYNAMO_DISABLE": "1",  # --enforce-eager still compiles the sampler, for minutes
    }
    command = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), *words]
    command += ["--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--enforce-eager"]
    with _running(command, log, settings) as process:
        yield process, _when_healthy("vLLM", process, log, lambda: f"http://127.0.0.1:{port}")


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a server with all its processes."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)


@contextmanager
def _running(
    command: Sequence[str], log: Path, settings: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("w") as stream:
        process = subprocess.Popen(
            command,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, "HF_HUB_OFFLINE": "1", **settings},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        end(process)


def _when_healthy(
    name: str, process: subprocess.Popen[bytes], log: Path, address: Callable[[], str | None]
) -> str:
    """The server's address, as soon as it answers there."""
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline and process.poll() is None:
        if (url := address()) is not None and _is_healthy(url):
            return url
        time.sleep(0.3)
    raise RuntimeError(f"{name} did not start:\n{log.read_text()[-3000:]}")


def _is_healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def _said_address(log: Path) -> str | None:
    found = re.search(r"running on (http://[\d.:]+)", log.read_text())
    return found[1] if found else None


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
