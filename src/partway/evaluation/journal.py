"""What an unfinished evaluation has finished so far: an append-only file it continues from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from partway.evaluation.samples import JudgedSample


class EvaluationJournal:
    """The samples of finished problems, each under a key that names everything they depend on.

    Lines under other keys or cut off in the middle do no harm. Without a path, nothing is kept.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._finished: dict[str, tuple[JudgedSample, ...]] = {}
        if self.path is not None and self.path.exists():
            # What stands behind the last end of line is no line yet: its writer was killed.
            *lines, cut_off = self.path.read_bytes().split(b"\n")
            self._finished.update(entry for line in lines for entry in _entries(line))
            with self.path.open("r+b") as stream:
                stream.truncate(self.path.stat().st_size - len(cut_off))

    def find(self, key: str) -> tuple[JudgedSample, ...] | None:
        """The samples under `key`, None if it is not finished."""
        return self._finished.get(key)

    def add(self, key: str, samples: Sequence[JudgedSample]) -> None:
        """Keep `samples` from now on."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"key": key, "samples": [sample.to_json() for sample in samples]})
        with self.path.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(f"{line}\n")

    def remove(self) -> None:
        """Delete the file: the evaluation is finished and its results are written."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def key_of(*parts: object) -> str:
    """A short text that stands for `parts`, the same in every process.

    >>> key_of("model", 0.8) == key_of("model", 0.8) != key_of("model", 0.2)
    True
    """
    # Not `hash`, which differs from process to process; half a character may be among the parts.
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _entries(line: bytes) -> list[tuple[str, tuple[JudgedSample, ...]]]:
    """What a line says; a damaged one says nothing, and its problem is done again."""
    try:
        row = json.loads(line)
        return [(row["key"], tuple(JudgedSample.from_json(sample) for sample in row["samples"]))]
    except (ValueError, KeyError, TypeError):
        return []
