"""`partway doctor --engine`: what servers are, which model they have, and how they take weights."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click


def check_servers(urls: Sequence[str], as_json: bool) -> None:
    """Show a few lines about each server; the exit code is 1 if one of them does not answer."""
    from partway.models.servers.calls import Trouble

    found, has_failed = {}, False
    for url in urls:
        try:
            found[url] = looked_at(url)
        except Trouble as trouble:
            found[url], has_failed = {"trouble": str(trouble)}, True
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        for url, said in found.items():
            click.echo(url)
            for name, value in said.items():
                click.echo(f"  {name.replace('_', ' ')}: {value}")
    if has_failed:
        raise SystemExit(1)


def looked_at(url: str) -> dict[str, str]:
    """What one server says about itself."""
    from partway.models.servers.calls import Calls
    from partway.models.servers.identity import identify

    calls = Calls(url, timeout=20.0, connections=2)
    try:
        identity = identify(calls)
        kind = identity.kind
        said = {
            "server": f"{kind.name} {identity.version}".strip(),
            "model": identity.model or "the one a request names",
            "weights": kind.serving() or "does not say",
            "takes": " or ".join(_FORMS[form] for form in kind.forms) or "no weights",
        }
        if len(kind.forms) < len(_FORMS):
            said["hint"] = kind.advice()
        return said
    finally:
        calls.close()


_FORMS = {"full": "whole weights", "lora": "adapters"}
