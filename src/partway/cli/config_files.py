"""Settings in YAML files and in `--key value` pairs.

A file may begin from others beside it with `base: other.yaml` or `base: [one.yaml, another.yaml]`, later ones
on top of earlier ones; what it says itself comes on top of them, and the command line on top of that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from partway.errors import ConfigError, shown
from partway.files import Unreadable, parse_yaml, read_object
from partway.settings import Settings

Layers = list[tuple[Path, Settings]]

BASE = "base"


def read_settings(path: str | Path) -> Settings:
    """The settings in a YAML file, on top of those of its bases."""
    return {key: value for _, settings in read_layers(Path(path)) for key, value in settings.items()}


def read_layers(path: Path, _above: tuple[Path, ...] = ()) -> Layers:
    """Every file that `path` begins from and what it says itself, `path` last."""
    if path.resolve() in _above:
        raise ConfigError(f"{path}: is its own base; remove one of the `base:` lines")
    try:
        settings = read_object(path, parse_yaml)
    except Unreadable as error:
        raise ConfigError(f"{path}: {error}") from None
    bases = settings.pop(BASE, [])  # no setting itself: what is left is checked against the schema
    inherited: Layers = []
    for base in bases if isinstance(bases, list) else [bases]:
        inherited += read_layers(path.parent / str(base), (*_above, path.resolve()))
    return [*inherited, (path, settings)]


def parse_overrides(arguments: Sequence[str]) -> dict[str, str]:
    """The pairs in `--key value`, `--key=value` and, for switches, `--key` alone.

    >>> parse_overrides(["--learning-rate", "1e-5", "--bf16", "--seed=7"])
    {'learning_rate': '1e-5', 'bf16': 'true', 'seed': '7'}
    """
    pairs: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or word == "--":
            raise ConfigError(f"'{word}' stands alone; expected --key value, and a file before them")
        name, equals, value = word[2:].partition("=")
        if not equals:
            value = rest.pop(0) if rest and not rest[0].startswith("--") else "true"
        if value.encode(errors="ignore").decode() != value:
            raise ConfigError(f"--{name}: {shown(value)} is not UTF-8 text")
        pairs[name.replace("-", "_")] = value
    return pairs


def file_of(source: str | Path | None) -> Callable[[str], str]:
    """A function that says which file has a key, as a message begins: `source`, or one it begins from."""

    def where(key: str) -> str:
        layers = read_layers(Path(source)) if source is not None else []
        return next((f"{path}: " for path, settings in reversed(layers) if key in settings), "")

    return where
