"""What answers at an address: which kind of server, with which model, with which routes for weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from partway.models.servers.calls import Calls, Trouble
from partway.models.servers.kinds import Kind, Plain, TransformersServe
from partway.models.servers.sglang import Sglang
from partway.models.servers.vllm import Vllm

LONGEST_NAME = 2_000  # characters; it is sent with every request


@dataclass(frozen=True, slots=True)
class Identity:
    """What a server says it is."""

    kind: Kind
    version: str = ""
    model: str | None = None


def identify(calls: Calls) -> Identity:
    """Find out what answers at an address."""
    routes = _routes(calls)
    if "/load_model" in routes and "/reset" in routes:
        return Identity(TransformersServe(calls))
    model = _model(calls)
    if "/update_weights_from_disk" in routes:
        return Identity(Sglang(calls, model, routes), _version(calls, "/server_info"), model)
    if "/version" in routes and "/tokenize" in routes:
        return Identity(Vllm(calls, model, routes), _version(calls, "/version"), model)
    return Identity(Plain(calls, model), "", model)


def _routes(calls: Calls) -> frozenset[str]:
    """The paths a server says it has: those of the frameworks in use publish them."""
    said = _said(calls, "/openapi.json")
    paths = said.get("paths") if isinstance(said, Mapping) else None
    return frozenset(map(str, paths)) if isinstance(paths, Mapping) else frozenset()


def _model(calls: Calls) -> str | None:
    said = _said(calls, "/v1/models")
    try:
        name = said["data"][0]["id"]
    except (LookupError, TypeError):
        return None
    return name if isinstance(name, str) and len(name) <= LONGEST_NAME else None


def _version(calls: Calls, path: str) -> str:
    """What a server says its version is, if it says so."""
    said = _said(calls, path)
    version = said.get("version") if isinstance(said, Mapping) else None
    return version[:40] if isinstance(version, str) else ""


def _said(calls: Calls, path: str) -> Any:
    """What a server says at a path, None if it refuses to; a `Trouble` if nobody answers there."""
    try:
        return calls.get(path)
    except Trouble as trouble:
        if trouble.status is None:
            raise
        return None
