"""The self-samples of a run by problem, read on as training writes them."""

from __future__ import annotations

import threading
from array import array
from collections import defaultdict
from pathlib import Path

from partway.buffer import Verdict
from partway.errors import RunError
from partway.runs import Row, Run
from partway.runs.rows import row_at, scan
from partway.solution import traced_text

FILE_SHIFT = 40  # a place is a file's number and the byte in it where a row begins


class SelfSamples:
    """Every self-sample of a run by problem; `update` reads on from where the last one ended."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._updating = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._files: list[Path] = []
        self._ends: dict[Path, tuple[int, int, Row | None]] = {}  # read so far: last row's start, end, itself
        self._places: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
        self._new: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)  # steps and places

    def update(self) -> None:
        """Take in what was written since; start over if a resumed run wrote something else instead."""
        with self._updating:
            self._read_on()

    def _read_on(self) -> None:
        # A resumed run cuts its files back and writes on: what was read behind the cut is no longer there.
        if not all(map(self._is_unchanged, self._files)):
            self._forget()
        for path in self.run.sample_files():
            if path not in self._ends:
                self._files.append(path)
                self._ends[path] = 0, 0, None
            first = self._files.index(path) << FILE_SHIFT
            for start, end, row in scan(path, self._ends[path][1]):
                place = first | start
                self._places[row["problem"]].append(place)
                if Verdict(row["verdict"]).is_new:
                    self._new[row["problem"]].append((int(row["step"]), place))
                self._ends[path] = start, end, row

    def _is_unchanged(self, path: Path) -> bool:
        start, end, row = self._ends[path]
        if not path.exists() or path.stat().st_size < end:
            return False
        try:
            return row is None or row_at(path, start) == row
        except RunError:  # other rows are there now, and none begins at this byte
            return False

    def rows(self, problem: str) -> list[Row]:
        """The samples of a problem, in the order drawn."""
        return [self._row(place) for place in self._places.get(problem, ())]

    def new_after(self, step: int, problem: str) -> list[Row]:
        """The samples of a problem after `step` of which the buffer kept something."""
        return [self._row(place) for drawn_at, place in self._new.get(problem, ()) if drawn_at > step]

    def problems_with_new_after(self, step: int) -> set[str]:
        """The problems for which `new_after` has anything."""
        return {problem for problem, found in self._new.items() if found[-1][0] > step}

    def _row(self, place: int) -> Row:
        return row_at(self._files[place >> FILE_SHIFT], place & (1 << FILE_SHIFT) - 1)


def sampled_text(row: Row) -> str:
    """What was traced of a self-sample."""
    return traced_text(row["prefix"], row["completion"], row["finished"])
