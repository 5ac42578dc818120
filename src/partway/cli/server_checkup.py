"""`partway doctor --engine`: what servers are, which model they have, and how they take weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from partway.models.servers.kinds import Kind

LONGEST = 300  # characters of what a server says


def check_servers(urls: Sequence[str], as_json: bool) -> None:
    """Show a few lines about each server; the exit code is 1 if one of them does not answer."""
    from partway.models.servers.calls import Trouble

    found, has_failed = {}, False
    for url in urls:
        try:
            found[url] = looked_at(url)
        except Trouble as trouble:
            # Without a status nothing answered at all; with one, the server has said what is wrong.
            hint = "; does a server run there?" if trouble.status is None else ""
            found[url], has_failed = {"trouble": f"{trouble}{hint}"}, True
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        for url, said in found.items():
            click.echo(url)
            for name, value in said.items():
                click.echo(f"  {name.replace('_', ' ')}: {_printable(value)}")
    if has_failed:
        raise SystemExit(1)


def _printable(value: str) -> str:
    """A server's words, without the signs that would steer a terminal."""
    return "".join(sign if sign.isprintable() else "?" for sign in value[:LONGEST])


def looked_at(url: str) -> dict[str, str]:
    """What one server says about itself."""
    from partway.models.servers.calls import Calls
    from partway.models.servers.identity import identify

    calls = Calls(url, timeout=20.0, connections=2)  # somebody waits at a terminal
    try:
        identity = identify(calls)
        return {
            "server": f"{identity.kind.name} {identity.version}".strip(),
            "model": identity.model or "the one a request names",
            **_about_weights(identity.kind, calls.root),
        }
    finally:
        calls.close()


def _about_weights(kind: Kind, root: str) -> dict[str, str]:
    version = kind.serving()
    said = {
        "weights_given_last": _GIVEN.get(version, str(version)),
        "takes": ", ".join(f"{_FORMS[form]} ({how})" for form, how in kind.forms.items()) or "no weights",
        "says_log_probs": "yes" if kind.tells_log_probs else "no",
    }
    if len(kind.forms) < len(_FORMS):
        said["for_more"] = kind.advice()
    if kind.is_paused():
        said["paused"] = f"yes, requests wait; to go on: curl -X POST {root}/resume"
    return said


_FORMS = {"full": "whole weights", "lora": "adapters"}
# vLLM calls the weights it was started with `default`.
_GIVEN = {None: "it does not say", "default": "none, it has those it was started with"}
