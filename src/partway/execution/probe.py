"""Runs against the walls around a program's process, from inside: what is refused in fact."""

from __future__ import annotations

import _socket
import os
from collections.abc import Callable

from partway.execution.wire import to_json


def try_everything(pipe: int, confine: Callable[[], dict[str, str]], zygote: int) -> None:
    """Write what is refused; a second line follows if this process cannot even become another."""
    protections = confine()
    attempts: dict[str, Callable[[], object]] = {
        "read a file": lambda: os.close(os.open("/", os.O_RDONLY)),
        "write a file": lambda: os.close(os.open(os.devnull, os.O_WRONLY)),
        "open a socket": lambda: _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM).close(),
        "start a process": lambda: os.fork() or os._exit(0),
        "signal a process": lambda: os.kill(zygote, 0),
    }
    refused = {name: _is_refused(attempt) for name, attempt in attempts.items()}
    os.write(pipe, to_json({"protections": protections, "refused": refused}).encode() + b"\n")
    if _is_refused(lambda: os.execv("/bin/sh", ["sh", "-c", ":"])):
        os.write(pipe, b"still here")


def _is_refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return True
    return False
