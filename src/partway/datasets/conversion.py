"""What turning a public data set into problems leaves: the problems, and why rows have no reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from partway.problem import Problem


@dataclass(frozen=True, slots=True)
class Reject:
    """A row of the raw data that got no reference: which, why in a few words, and what exactly was wrong."""

    split: str
    row: int  # index in the raw file, from 0
    reason: str
    detail: str
    record: Mapping[str, object]


@dataclass(frozen=True)
class Conversion:
    """Problems per split, the rows without a reference, and tables worth reporting (`notes`)."""

    splits: dict[str, list[Problem]]
    rejects: list[Reject]
    notes: dict[str, object] = field(default_factory=dict)

    def rejects_by_reason(self, split: str | None = None) -> dict[str, int]:
        """How many rows got no reference for which reason, the most frequent reason first."""
        reasons = (reject.reason for reject in self.rejects if split in (None, reject.split))
        return dict(Counter(reasons).most_common())
