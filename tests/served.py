"""Real servers on loopback for tests: `transformers serve`, started without a model."""

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx

SECONDS_TO_START = 300


@contextmanager
def transformers_serve(log, *words):
    """A server on a free port of its own choosing, healthy when it is yielded: its process, its address."""
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", *map(str, words)]
    with log.open("w") as stream:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", "0", "--device", "cpu"],
            stdout=stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"},
        )
    try:
        yield process, healthy_address(process, log)
    finally:
        process.kill()
        process.wait(timeout=30)


def healthy_address(process, log):
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline and process.poll() is None:
        if address := re.search(r"running on (http://[\d.:]+)", log.read_text()):
            assert httpx.get(f"{address[1]}/health").json() == {"status": "ok"}
            return address[1]
        time.sleep(0.2)
    raise AssertionError(f"transformers serve did not start:\n{log.read_text()[-2000:]}")
