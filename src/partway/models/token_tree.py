"""The learning tree: all targets of one problem hang on its prompt, shared beginnings are laid out once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Targets:
    """What is learned of one problem: a prompt and the token sequences that should follow it."""

    prompt: tuple[int, ...]
    targets: tuple[tuple[int, ...], ...]
