"""A cache that is bounded in bytes, because programs choose how large its values are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """Keeps at most `max_bytes`, as `size_of` counts them, and forgets what was not used for longest.

    A value of more than `max_bytes_each` is not kept: it would push out too many others.

    Two halves: what is new or used again goes to the recent one; when that is full it becomes the older one,
    and what was the older one is dropped. No list of uses has to be kept, so a hit costs one look-up.
    """

    def __init__(
        self, max_bytes: int, size_of: Callable[[Key, Value], int], max_bytes_each: int | None = None
    ) -> None:
        self.recent: dict[Key, Value] = {}
        self._older: dict[Key, Value] = {}
        self._size_of = size_of
        self._half = max_bytes // 2
        self._most = self._half if max_bytes_each is None else min(max_bytes_each, self._half)
        self._used = 0

    def get(self, key: Key) -> Value | None:
        """The value, if it is still known."""
        found = self.recent.get(key)
        if found is None and (found := self._older.get(key)) is not None:
            self.put(key, found)  # used again: it outlives the older half
        return found

    def put(self, key: Key, value: Value) -> None:
        size = self._size_of(key, value)
        if key in self.recent or size > self._most:
            return
        if self._used + size > self._half:
            self._older, self.recent, self._used = self.recent, {}, 0
        self.recent[key] = value
        self._used += size

    def clear(self) -> None:
        self.recent, self._older, self._used = {}, {}, 0

    def __len__(self) -> int:
        return len(self.recent.keys() | self._older.keys())
