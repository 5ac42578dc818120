"""Keeps the results of checks of a model in the user's cache: a check that takes a minute is made once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import torch

from partway import __version__
from partway.files import atomic_writer
from partway.training.resuming import model_digest

logger = logging.getLogger(__name__)
LARGE = 20_000_000  # parameters; smaller models are checked sooner than their digest is looked up


Way = TypeVar("Way")


def flaw_found(model: Any, way: Way, pad_id: int, find: Callable[[Any, Way, int], str | None]) -> str | None:
    """What `find` has against a way of computing with a model, None if nothing; asked once of a large one."""
    if sum(weight.numel() for weight in model.parameters()) < LARGE:
        return find(model, way, pad_id)
    path = cache_directory() / "checks" / f"{_key(model, way)}.json"
    with contextlib.suppress(OSError, ValueError):  # there is none, or it is damaged
        known: str | None = json.loads(path.read_text(encoding="utf-8"))["flaw"]
        return known
    logger.info("checking the model (%s), once; the result is kept", type(way).__name__)
    flaw = find(model, way, pad_id)
    with contextlib.suppress(OSError), atomic_writer(path) as stream:  # nowhere to keep it: it is found again
        json.dump({"flaw": flaw}, stream)
    return flaw


def cache_directory() -> Path:
    """Where partway keeps what can be made again: PARTWAY_CACHE, else a folder of the user's cache."""
    chosen = os.environ.get("PARTWAY_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(chosen) if chosen else base / "partway"


def _key(model: Any, way: object) -> str:
    """A text that changes with all that decides what a check finds."""
    facts = (
        model_digest(model),
        model.config.to_json_string(),
        getattr(model.config, "_attn_implementation", None),
        any(getattr(module, "gradient_checkpointing", False) for module in model.modules()),
        torch.backends.cuda.matmul.fp32_precision,
        str(next(model.parameters()).device.type),
        [__version__, torch.__version__, version("transformers")],
        repr(way),
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]
