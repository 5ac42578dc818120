"""What may become of a sampled solution, and the rules by which a buffer decides it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal

from partway.execution.completion import Equivalence

Dedup = Literal["ast", "alpha", "spelling"]
DeadEnds = Literal["keep", "drop"]
Spurious = Literal["keep", "flag", "drop"]


class Verdict(StrEnum):
    """What became of a sampled solution."""

    NEW_FULLY_CORRECT = "new_fully_correct"
    KNOWN_FULLY_CORRECT = "known_fully_correct"
    NEW_STITCHED = "new_stitched"
    NEW_PARTIALLY_CORRECT = "new_partially_correct"
    KNOWN_PARTIALLY_CORRECT = "known_partially_correct"
    TOO_LONG = "too_long"
    SPURIOUS = "spurious"
    INCORRECT = "incorrect"
    NOT_EXECUTABLE = "not_executable"

    @property
    def is_new(self) -> bool:
        """Whether the buffer kept something."""
        return self.startswith("new_")

    @property
    def is_optional(self) -> bool:
        """Whether only rules beyond the paper's give this verdict, so that it is shown where it occurs."""
        return self in (Verdict.NEW_STITCHED, Verdict.SPURIOUS)


@dataclass(frozen=True)
class Rules:
    """What a buffer counts as a duplicate, as too long and as worth keeping."""

    dedup: Dedup = "ast"
    length_tolerance: int = 0
    keeps_partial: bool = True
    max_solutions: int | None = None
    equivalence: Equivalence = "exact"
    stitch: bool = False
    dead_ends: DeadEnds = "keep"
    spurious: Spurious = "keep"
    length_limit: int | None = None

    @property
    def completes(self) -> bool:
        """Whether a beginning is kept only with a completion that was run and gave the answer."""
        return self.equivalence == "live" or self.stitch or self.dead_ends == "drop"

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Rules:
        """The rules that the keys of a config describe; keys that are missing have defaults."""
        # Those that settings and rules call the same; the others are named for what a user sets.
        names = ("equivalence", "stitch", "dead_ends", "spurious", "length_limit")
        same = {name: settings[name] for name in names if name in settings}
        return cls(
            dedup=settings.get("dedup", "ast"),
            length_tolerance=settings.get("length_tolerance", 0),
            keeps_partial=settings.get("self_sampling", "fcs+pcs") == "fcs+pcs",
            max_solutions=settings.get("max_solutions_per_problem"),
            **same,
        )

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Rules:
        """The rules that a saved buffer names beside the settings of its programs."""
        return shared_rules(**{field.name: row[field.name] for field in fields(cls) if field.name in row})


shared_rules = lru_cache(maxsize=64)(Rules)  # a hundred thousand buffers, one set of rules
