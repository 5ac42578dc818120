"""What servers add to the method: an engine from addresses, and what `doctor --engine` says of them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from partway.errors import visible
from partway.registry import Part, Parts

PARTS: Parts = {
    "engines": {
        "http": Part("modelservers.http_engine:HttpEngine", "Inference servers draw samples."),
        "training": Part(
            "modelservers.in_training:engine_of", "The servers that a training's settings name."
        ),
    },
    "explorers": {
        "ahead": Part(
            "modelservers.in_training:explorer_of", "New weights seldom, samples ahead of learning."
        )
    },
    "checkups": {"servers": Part("modelservers.parts:check_servers", "What answers at some addresses.")},
}
LONGEST = 300  # characters of what a server says


def check_servers(urls: Sequence[str], as_json: bool) -> None:
    """Show a few lines about each server; the exit code is 1 if one of them does not answer."""
    from modelservers.calls import Calls, Trouble
    from modelservers.kinds import identify

    found, has_failed = {}, False
    for url in urls:
        calls = Calls(url, timeout=20.0, connections=2)  # somebody waits at a terminal
        try:
            found[url] = identify(calls).about()
        except Trouble as trouble:
            # Without a status nothing answered at all; with one, the server has said what is wrong.
            hint = "; does a server run there?" if trouble.status is None else ""
            found[url], has_failed = {"trouble": f"{trouble}{hint}"}, True
        finally:
            calls.close()
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        for url, said in found.items():
            click.echo(url)
            for name, value in said.items():
                click.echo(f"  {name.replace('_', ' ')}: {visible(value[:LONGEST], kept='')}")
    if has_failed:
        raise SystemExit(1)
