"""How this process and its workers speak: short frames on a socket, and a sheet of shared memory per program.

The caller writes a program's text on its sheet, and the program's process the record. Every sheet is a file
of its own without a name, used for one program and thrown away. So the zygote, which hands it on without
reading it, and every other program's process never hold a byte of this program.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepbox.wire import WireError

MAX_FRAME = 1 << 24
_LENGTH = struct.Struct(">I")

Refusal = tuple[str, str]  # why the step after the last may not run: kind and message
NOTHING_REFUSED: Refusal = ("", "")
UNSCREENED: Refusal = ("unscreened", "")  # nobody has looked: the program's process has to

OUTCOME_BYTES = 4096  # kept free for the last line
_HEADER = struct.Struct("=qqq")  # bytes of the text, of the record, and room for the record


def frame(payload: bytes) -> bytes:
    """The payload after its length."""
    return _LENGTH.pack(len(payload)) + payload


class FrameReader:
    """Cuts a stream of bytes into the payloads of its frames."""

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Every payload that `data` completes; a frame over the limit is a WireError."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            # Before anything is waited for or stored: the length is a stranger's word.
            if length > self._limit:
                raise WireError(f"a frame of {length} bytes, the limit is {self._limit}")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield payload


@dataclass(frozen=True, slots=True)
class SentSheet:
    """A sheet seen from the caller."""

    descriptor: int
    start: int  # of the record
    room: int

    @classmethod
    def of(cls, steps: Sequence[str], until: str, room: int, refusal: Refusal) -> SentSheet:
        """A new sheet with this program on it and `room` bytes for the states."""
        # No part holds a null character: such programs have been refused.
        text = "\0".join((until, *refusal, *steps)).encode("utf-8", "surrogatepass")
        start, room = _HEADER.size + len(text), room + OUTCOME_BYTES
        descriptor = _nameless_file()
        os.ftruncate(descriptor, start + room)
        os.pwrite(descriptor, _HEADER.pack(len(text), 0, room) + text, 0)
        return cls(descriptor, start, room)

    def record(self) -> bytes:
        """What the program's process wrote: its own word, so its length is believed within the room only."""
        _, used, _ = _HEADER.unpack(os.pread(self.descriptor, _HEADER.size, 0))
        return os.pread(self.descriptor, min(max(0, used), self.room), self.start)

    def throw_away(self) -> None:
        """Give the memory back."""
        os.close(self.descriptor)


def _nameless_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("sheet")
    import tempfile  # not in a worker, which has to stay small to be forked fast

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class Sheet:
    """The sheet in the process that runs its program."""

    __slots__ = ("_memory", "_room", "_text", "_used")

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, 0)
        self._text, _, self._room = _HEADER.unpack_from(self._memory, 0)
        self._used = 0
        self._note_length()

    def program(self) -> list[str]:
        """The variable that ends it, kind and message of the refusal, then the steps."""
        text = self._memory[_HEADER.size : _HEADER.size + self._text]
        return text.decode("utf-8", "surrogatepass").split("\0")

    def append(self, line: bytes) -> bool:
        """Whether the line still had room; it is safe at once, whatever happens to this process."""
        return self._write(line, self._room - OUTCOME_BYTES)

    def finish(self, outcome: bytes) -> None:
        """Write how the program ended, for which there is always room."""
        self._write(outcome, self._room)

    def _write(self, line: bytes, room: int) -> bool:
        end = self._used + len(line)
        if end > room:
            return False
        start = _HEADER.size + self._text + self._used
        self._memory[start : start + len(line)] = line
        self._used = end
        self._note_length()  # last: whatever kills this process, the record ends with a whole line
        return True

    def _note_length(self) -> None:
        _HEADER.pack_into(self._memory, 0, self._text, self._used, self._room)
