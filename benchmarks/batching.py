"""Padding as a good user does it: rows of like length together, each batch as wide as its longest row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def batches_by_length(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """The places of rows with these lengths, `size` at a time, the shortest first.

    >>> list(batches_by_length([5, 2, 9, 2], 2))
    [[1, 3], [0, 2]]
    """
    places = sorted(range(len(lengths)), key=lambda place: lengths[place])
    for start in range(0, len(places), size):
        yield places[start : start + size]
