"""`partway doctor`: what this installation has, how strong its sandbox is, and what is missing."""

from __future__ import annotations

import json
import logging
import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib import metadata

import click

from partway import registry
from partway.cli.options import AS_JSON, ENGINE, counted, say_next
from partway.cli.parallel import cores

USES = {
    "peft": "LoRA adapters (use_peft)",
    "bitsandbytes": "weights in 4 or 8 bits (load_in_4bit, load_in_8bit)",
    "datasets": "problems from the Hugging Face Hub",
    "tensorboard": "metrics in TensorBoard",
    "wandb": "metrics in Weights & Biases",
    "trackio": "metrics in Trackio",
    "plots": "figures in reports",
    "explore": "the local page of partway explore",
    "smollm2": "a small language model that needs no download",
    "sql": "queries as programs (language: sql)",
}


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The room for general programs: usable or why not, its walls, and what a worker was refused."""

    strength: str
    protections: dict[str, str] = field(default_factory=dict)
    refused: dict[str, bool] = field(default_factory=dict)
    withstood: dict[str, bool] = field(default_factory=dict)
    start_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Extra:
    """An optional part, its packages with their versions (None: missing), and how to get it."""

    name: str
    use: str
    packages: dict[str, str | None]

    @property
    def is_missing(self) -> bool:
        return None in self.packages.values()

    @property
    def command(self) -> str:
        return f"pip install 'partway[{self.name}]'"


@dataclass(frozen=True, slots=True)
class Checkup:
    """Everything `partway doctor` knows."""

    python: str
    system: str
    packages: dict[str, str | None]
    devices: list[str]
    sandbox: Sandbox
    extras: list[Extra]

    @property
    def problems(self) -> list[str]:
        """What keeps partway from working here, each with what to do."""
        missing = [name for name, version in self.packages.items() if version is None]
        found = [f"{name} is missing; try: pip install {name}" for name in missing]
        return found + [self.sandbox.strength] * self.sandbox.strength.startswith("unusable")


@click.command()
@ENGINE
@AS_JSON
def command(engine: str | None, as_json: bool) -> None:
    """Show versions, devices, the strength of the sandbox, and what is missing.

    With --engine, look at inference servers instead: what each is, which model it has, and how it takes
    weights. The exit code is 1 if something that partway needs is missing.

    \b
    Examples:
      partway doctor
      partway doctor --json
      partway doctor --engine http://localhost:8000
    """
    if engine is not None:
        urls = [url.strip() for url in engine.split(",") if url.strip()]
        registry.part("checkups", "servers")(urls, as_json)
        return
    logging.getLogger(__name__).info("looking at packages and devices, attacking the sandbox (some seconds)")
    found = examine()
    if as_json:
        click.echo(json.dumps({**asdict(found), "problems": found.problems}, indent=2))
    else:
        show(found)
    if found.problems:
        raise SystemExit(1)
    if not as_json:
        say_next("partway demo")


def examine() -> Checkup:
    """Look at this installation and this machine; starts a worker and imports torch."""
    required, extras = requirements()
    return Checkup(
        python=f"{platform.python_version()} ({sys.executable})",
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        packages={name: version_of(name) for name in ("partway", *required)},
        devices=list(devices()),
        sandbox=examine_sandbox(),
        extras=[
            Extra(extra, USES[extra], {name: version_of(name) for name in names})
            for extra, names in extras.items()
            if extra in USES
        ],
    )


def requirements() -> tuple[list[str], dict[str, list[str]]]:
    """The packages partway needs, and those of each extra, as its metadata lists them."""
    required: list[str] = []
    extras: dict[str, list[str]] = {}
    try:
        lines = metadata.requires("partway") or []
    except metadata.PackageNotFoundError:
        lines = []
    for line in lines:  # such as `peft>=0.18; extra == "peft"`
        match = re.match(r"[\w.-]+", line)
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        if match and extra:
            extras.setdefault(extra[1], []).append(match[0])
        elif match:
            required.append(match[0])
    return required, extras


def version_of(package: str) -> str | None:
    """The installed version of a package, None if there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def devices() -> Iterator[str]:
    """The processors this process may use, and the accelerators torch sees."""
    yield f"CPU: {counted(cores(), 'core')}"
    try:
        import torch
    except ImportError:
        yield "accelerators: unknown without torch"
        return
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        yield f"cuda:{index}: {properties.name}, {properties.total_memory / 2**30:.0f} GB"
    if torch.backends.mps.is_available():
        yield "mps: Apple GPU"


def examine_sandbox() -> Sandbox:
    """The room for general programs, as the folder that adds it sees it."""
    found = registry.parts("checkups").get("sandbox")
    if found is None:
        return Sandbox(f"missing: general programs cannot be run{registry.missing_parts()}")
    examined: Sandbox = found.load()()
    return examined


def _tried(verb: str, noun: str, found: dict[str, bool], good: str, bad: str) -> dict[str, str]:
    """What got through, one by one; what did not is counted."""
    through = {f"{verb} {name}": bad for name, is_good in found.items() if not is_good}
    withstood = len(found) - len(through)
    return ({counted(withstood, noun): good} if withstood else {}) | through


def show(found: Checkup) -> None:
    """Four short tables."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    box, extras = found.sandbox, found.extras
    tables = {
        "Packages": {name: version or "missing" for name, version in found.packages.items()},
        "Devices": dict(device.split(": ", 1) for device in found.devices),
        "Sandbox for general programs": {
            "strength": box.strength,
            **box.protections,
            **_tried("tried to", "forbidden program", box.refused, "refused", "ALLOWED"),
            **_tried("attacked to", "attack", box.withstood, "withstood", "GOT THROUGH"),
        },
        "Extras": {
            f"{e.name}: {e.use}": f"missing; {e.command}" if e.is_missing else "installed" for e in extras
        },
    }
    console = Console()
    console.print(f"Python {found.python} on {found.system}\n", highlight=False)
    for title, rows in tables.items():
        table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 2))
        for name, state in rows.items():
            bad = state.startswith(("missing", "inactive", "weak", "unusable", "broken", "ALLOWED", "GOT"))
            table.add_row(escape(name), escape(state), style="bold" if bad else "")
        console.print(table)
    for problem in found.problems:
        console.print(f"[red]![/] {problem}", highlight=False)
