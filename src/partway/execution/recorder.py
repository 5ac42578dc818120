"""Running one program step by step and writing down what each step changed.

The record is made outside the program's reach, from encoded values only: no method of a program's own
class is ever called for it.
"""

from __future__ import annotations
import __future__

import ast
import functools
import marshal
import mmap
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GenericAlias,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    NoneType,
    UnionType,
    WrapperDescriptorType,
)
from typing import Any

from partway.execution.isolation import grant_reserve
from partway.execution.namespace import BUILTIN_EXCEPTIONS, fresh_namespace
from partway.execution.screen import Screened, screen
from partway.execution.wire import MAX_NAME, IntegerTooLarge, encode_value, to_json

MAX_MESSAGE = 300
MAX_SHOWN = 10**100

Reason = tuple[str, str]  # the kind of a failure and its message

_IMMUTABLE = frozenset({int, float, bool, NoneType, str, bytes, complex, Fraction, Decimal, range})
_CALLABLES = frozenset(
    {
        FunctionType,
        BuiltinFunctionType,
        MethodType,
        MethodDescriptorType,
        ClassMethodDescriptorType,
        MethodWrapperType,
        WrapperDescriptorType,
        GenericAlias,
        UnionType,
        functools.partial,
        type(functools.lru_cache(ord)),
        type(__future__.division),
    }
)


class Journal:
    """The lines of the program that is running, in memory shared with the process that watches it.

    When a program is killed, the watcher still finds the states of the steps before.
    """

    _HEADER = struct.Struct("=qq")

    def __init__(self, capacity: int) -> None:
        self._memory = mmap.mmap(-1, self._HEADER.size + capacity)
        self._capacity = capacity
        self._program = -1
        self._used = 0

    def begin(self, program: int) -> None:
        """Start an empty record for the program with this number."""
        self._program, self._used = program, 0
        self._HEADER.pack_into(self._memory, 0, program, 0)

    def append(self, line: bytes) -> bool:
        """Whether the line still had room."""
        end = self._used + len(line)
        if end > self._capacity:
            return False
        offset = self._HEADER.size + self._used
        self._memory[offset : offset + len(line)] = line
        self._used = end
        self._HEADER.pack_into(self._memory, 0, self._program, end)
        return True

    def lines(self, program: int) -> bytes:
        """What was written for this program, by whichever process."""
        owner, used = self._HEADER.unpack_from(self._memory, 0)
        if owner != program or not 0 <= used <= self._capacity:
            return b""
        return self._memory[self._HEADER.size : self._HEADER.size + used]

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()


@dataclass(frozen=True, slots=True)
class Step:
    """A step ready to run, or the reason why it never will."""

    screened: Screened
    code: CodeType | None = None
    reason: Reason | None = None


@functools.cache
def prepare(text: str) -> Step:
    """Parse, compile and screen one step; samples of one problem share many of them."""
    try:
        tree: ast.Module = compile(text, "<step>", "exec", int(ast.PyCF_ONLY_AST), dont_inherit=True)
        code = compile(tree, "<solution>", "exec", dont_inherit=True)
    except MemoryError as error:
        return Step(Screened(), reason=("memory", describe(error)))
    except (SyntaxError, ValueError, RecursionError, OverflowError, SystemError) as error:
        return Step(Screened(), reason=("error", describe(error)))
    screened = screen(tree)
    if screened.refusal is not None:
        return Step(screened, reason=(screened.refusal.kind, screened.refusal.message))
    return Step(screened, code)


def run_program(
    steps: Sequence[Step], answer_variable: str, journal: Journal, keep: list[object]
) -> Reason | None:
    """Run the steps until one fails or binds the answer variable; the failing step is the first not written.

    Everything the program made goes to `keep`: were it destroyed here, its clean-up code would run here.
    """
    bound = set().union(*(step.screened.bound for step in steps))
    namespace = fresh_namespace()
    keep.append(namespace)
    record = _Record(namespace)
    for step in steps:
        reason = (
            _refusal(step, bound) or _execute(step.code, namespace, keep) or record.note(namespace, journal)
        )
        if reason is not None:
            return reason
        if answer_variable in namespace:
            return None
    return None


def describe(error: BaseException) -> str:
    """The type and text of an exception, without running any code of the program's own classes."""
    kind = type(error)
    parts: tuple[object, ...] = ()
    if kind in BUILTIN_EXCEPTIONS:
        parts = (error.msg,) if isinstance(error, SyntaxError) else error.args
    text = ", ".join(map(_part_of_message, parts))
    return f"{kind.__name__}: {text}"[:MAX_MESSAGE] if text else kind.__name__[:MAX_MESSAGE]


def _part_of_message(part: object) -> str:
    if type(part) is str:
        return part[:MAX_MESSAGE]
    if type(part) in (float, bool) or (type(part) is int and -MAX_SHOWN < part < MAX_SHOWN):
        return str(part)
    return f"<{type(part).__name__[:MAX_NAME]}>"


def _refusal(step: Step, bound: set[str]) -> Reason | None:
    absent = sorted(step.screened.absent - bound)
    return step.reason or (("forbidden", f"{absent[0]!r} is not available") if absent else None)


def _execute(code: CodeType | None, namespace: dict[str, Any], keep: list[object]) -> Reason | None:
    assert code is not None, "a step without code has a reason"
    try:
        exec(code, namespace)
    except MemoryError as error:
        grant_reserve()
        keep.append(error)
        return "memory", describe(error)
    except BaseException as error:  # a program may raise anything, SystemExit too: it is data
        keep.append(error)
        return "error", describe(error)
    return None


class _Record:
    """What every variable held after the last step, as text, so that a change behind an alias shows."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.texts: dict[str, str] = {}
        self.settled: dict[str, Any] = dict(namespace)  # objects that cannot change, by name
        self.printed: dict[str, tuple[bytes, str]] = {}  # of the others: fingerprint and text

    def note(self, namespace: Mapping[str, Any], journal: Journal) -> Reason | None:
        """Write the changes since the last step."""
        try:
            line = self.changes(namespace)
        except IntegerTooLarge:
            return "memory", "an integer is too large to be a state"
        except MemoryError as error:
            grant_reserve()
            return "memory", describe(error)
        return None if journal.append(line.encode()) else ("memory", "the states are too large to be kept")

    def changes(self, namespace: Mapping[str, Any]) -> str:
        changed = []
        gone = list(self.texts.keys() - namespace.keys())
        for name, value in namespace.items():
            if self.settled.get(name, self) is value:
                continue
            text = self.encode(name, value)
            if text is None and name in self.texts:
                gone.append(name)
            elif text is not None and self.texts.get(name) != text:
                self.texts[name] = text
                changed.append(f"{to_json(name)}:{text}")
        for name in gone:
            del self.texts[name]
            self.settled.pop(name, None)
        return f"[{{{','.join(changed)}}},{to_json(sorted(gone))}]\n"

    def encode(self, name: str, value: object) -> str | None:
        """The text of a value, None for what is no value; work is saved where nothing can have changed."""
        kind = type(value)
        self.settled.pop(name, None)
        if name.startswith("__") or _is_no_value(kind):
            self.settled[name] = value
            return None
        if kind in _IMMUTABLE:
            self.settled[name] = value
            return encode_value(value)
        fingerprint = _fingerprint(value)
        known = self.printed.get(name)
        if fingerprint is None or known is None or known[0] != fingerprint:
            known = (fingerprint or b"", encode_value(value))
            self.printed[name] = known
        return known[1]


def _fingerprint(value: Any) -> bytes | None:
    """Equal only for equal contents; None if the value holds more than plain data."""
    try:
        return blake2b(marshal.dumps(value), digest_size=16).digest()
    except ValueError:
        return None


def _is_no_value(kind: type) -> bool:
    """Whether objects of this kind are modules, functions or classes."""
    return kind in _CALLABLES or issubclass(kind, (type, ModuleType))
