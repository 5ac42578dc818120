"""Data sets of the Hugging Face Hub, by name: `openai/gsm8k`, `openai/gsm8k:test`, `openai/gsm8k:main:test`.

Without a network they come from the cache of an earlier download, if there is one.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from partway.errors import ProblemError, one_line

USUAL = ("main", "default")  # the configuration meant if several are there and none is named
_NAME = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?::(?P<parts>[\w.:-]+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class HubName:
    """Which rows of the Hub are meant; without a configuration, the only or the usual one."""

    name: str
    config: str | None = None
    split: str = "train"

    def __str__(self) -> str:
        return ":".join(part for part in (self.name, self.config, self.split) if part)


def hub_name(text: str) -> HubName | None:
    """What `text` names on the Hub, None if it cannot be such a name.

    >>> [str(hub_name(f"openai/gsm8k{more}")) for more in ("", ":test", ":main:test", " test")]
    ['openai/gsm8k:train', 'openai/gsm8k:test', 'openai/gsm8k:main:test', 'None']
    """
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    # One part is the split, of two the first is the configuration.
    *config, split = (match["parts"] or "train").split(":")
    return HubName(match["name"], config[0] if config else None, split) if len(config) < 2 else None


def read_hub(wanted: HubName) -> Iterable[Any]:
    """The rows, downloaded if they are not in the cache."""
    with reaching_hub(partial(_unusable, wanted)) as datasets:
        try:
            config = wanted.config or _usual(wanted, datasets.get_dataset_config_names(wanted.name))
            rows: Iterable[Any] = datasets.load_dataset(wanted.name, config, split=wanted.split)
        except ValueError as error:  # it is there, but not a split or a configuration of this name
            spellings = f"{wanted.name}:SPLIT or {wanted.name}:CONFIGURATION:SPLIT"
            raise ProblemError(f"{wanted}: {one_line(error, lines=1)}; write {spellings}") from None
    return rows


@contextmanager
def reaching_hub(unusable: Callable[[str], ProblemError]) -> Iterator[Any]:
    """The library that reads from the Hub; why it cannot is said in the error that `unusable` makes."""
    try:
        import datasets
    except ImportError:
        raise unusable("it needs: pip install 'partway[datasets]'") from None
    try:
        with _offline_without_network():
            yield datasets
    except (OSError, RuntimeError, ValueError, KeyError, datasets.exceptions.DatasetsError) as error:
        raise unusable(one_line(error, lines=1)) from None


@contextmanager
def _offline_without_network() -> Iterator[None]:
    """Without a network, read from the cache at once, instead of after half a minute of retries."""
    from datasets import config
    from huggingface_hub import constants

    # Both have read HF_HUB_OFFLINE when they were imported: it would be too late to set it now.
    was_offline = constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE
    if not is_hub_known():
        constants.HF_HUB_OFFLINE = config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE = was_offline


def is_hub_known() -> bool:
    """Whether the name of the Hub can be looked up, or a proxy may know it."""
    host = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co")).hostname
    try:
        return bool(getproxies()) or bool(socket.getaddrinfo(host, 443))
    except OSError:
        return False


def _usual(wanted: HubName, configs: Sequence[str]) -> str | None:
    if len(configs) <= 1:
        return next(iter(configs), None)
    usual = next((config for config in USUAL if config in configs), None)
    if usual is None:
        named = f"{wanted.name}:{configs[0]}:{wanted.split}"
        raise ProblemError(f"{wanted.name} has {', '.join(configs)}; name one of them: {named}")
    return usual


def _unusable(wanted: HubName, reason: str) -> ProblemError:
    return ProblemError(
        f"{wanted.name}: no such file, and as a data set of the Hugging Face Hub it cannot be used: "
        f"{reason}; instead, download it and name its file"
    )
