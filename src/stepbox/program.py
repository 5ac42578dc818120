"""One program, run step by step in a world of its own, and the record of what each step changed.

The record is made outside the program's reach, from encoded values only: no method of a program's own class
is ever called for it.
"""

from __future__ import annotations

import ast
import marshal
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from opcode import opmap
from signal import ITIMER_PROF, setitimer
from types import CodeType, ModuleType, NoneType
from typing import Any

from stepbox.screen import Screened, refusals, screen
from stepbox.walls import grant_reserve
from stepbox.wire import MAX_NAME, TOO_LARGE, IntegerTooLarge, digest, encode_value, text_to_json
from stepbox.world import BUILTIN_EXCEPTIONS, NO_VALUES

MAX_MESSAGE = 300
MAX_SHOWN = 10**100

Reason = tuple[str, str]  # the kind of a failure and its message
Step = CodeType | Reason  # ready to run, or the reason why it never will be

_IMMUTABLE = frozenset({int, float, bool, NoneType, str, bytes, complex, Fraction, Decimal, range})
_UNCHANGING = _IMMUTABLE | {ModuleType}  # a module holds lists only if a program puts them there
_STORE_ATTR = opmap["STORE_ATTR"]


def _tick() -> float:
    """What the kernel adds whenever the timer is set."""
    before, _ = setitimer(ITIMER_PROF, 100.0)
    found, _ = setitimer(ITIMER_PROF, before)
    return found - 100.0


_TICK = _tick()


def prepare(text: str) -> Step:
    """Compile one step that was screened before."""
    step: Step = _compiled(text, "<solution>", 0)
    return step


def prepare_unscreened(texts: Sequence[str]) -> list[Step]:
    """Parse, compile and screen all steps: whether a name may be missing depends on what later steps bind."""
    trees = [_compiled(text, "<step>", ast.PyCF_ONLY_AST) for text in texts]
    seen = [screen(tree) if isinstance(tree, ast.Module) else Screened() for tree in trees]
    steps: list[Step] = []
    for tree, refusal in zip(trees, refusals(seen), strict=True):
        step = _compiled(tree, "<solution>", 0) if isinstance(tree, ast.Module) else tree
        # What cannot be compiled is wrong before it is forbidden.
        steps.append((refusal.kind, refusal.message) if refusal and isinstance(step, CodeType) else step)
    return steps


def _compiled(source: str | ast.Module, name: str, flags: int) -> Any:
    """What the source is compiled to, or the reason why it cannot be."""
    try:
        return compile(source, name, "exec", flags, dont_inherit=True)
    except MemoryError as error:
        return "memory", describe(error)
    except (SyntaxError, ValueError, RecursionError, OverflowError, SystemError) as error:
        return "error", describe(error)


def run_program(
    steps: Iterable[Step],
    until: str,
    namespace: dict[str, Any],
    record: FullRecord | PlainRecord,
    write: Callable[[bytes], bool],
    keep: list[object],
) -> Reason | None:
    """Run the steps until one fails or binds `until`; the failing step is the first not written.

    What a step raised goes to `keep`: were it destroyed here, clean-up code of the program would run here.
    """
    for step in steps:
        if isinstance(step, tuple):
            return step
        reach = record.reach(step, namespace)
        reason = _execute(step, namespace, keep) or _note(record, namespace, reach, write)
        if reason is not None:
            return reason
        if until in namespace:  # also if a compound statement bound it
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


def _execute(code: CodeType, namespace: dict[str, Any], keep: list[object]) -> Reason | None:
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


def _note(
    record: FullRecord | PlainRecord,
    namespace: Mapping[str, Any],
    reach: Container[str] | None,
    write: Callable[[bytes], bool],
) -> Reason | None:
    """Write what changed since the last step."""
    try:
        with _off_the_clock():
            line = record.changes(namespace, reach).encode()
    except IntegerTooLarge:
        return "memory", "an integer is too large to be a state"
    except MemoryError as error:
        grant_reserve()
        return "memory", describe(error)
    return None if write(line) else ("memory", TOO_LARGE)


@contextmanager
def _off_the_clock() -> Iterator[None]:
    """Time that is not the program's: its timer stands still. The kernel's limit counts on."""
    remaining, _ = setitimer(ITIMER_PROF, 0.0)
    try:
        yield
    finally:
        if remaining:
            setitimer(ITIMER_PROF, max(remaining - _TICK, 1e-6))


class FullRecord:
    """What every variable held after the last step, as text, so that a change behind an alias shows."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.texts: dict[str, str] = {}
        # Objects that cannot change, by name. Not functions: they may hold a generator, and were the last to
        # hold one to let go of it here, its clean-up code would run here.
        self.settled: dict[str, Any] = dict(namespace)
        self.printed: dict[str, tuple[str, str]] = {}  # of the others: fingerprint and text
        self.is_plain = True  # no attribute is set anywhere

    def reach(self, step: CodeType, namespace: Mapping[str, Any]) -> Container[str] | None:
        """The variables that a step, about to run, can change; None if it may be any.

        A step that makes no function and names only what cannot change calls nothing of the program's; it can
        bind the names that it says. Not so if some attribute was set: a module may hold a function then.
        """
        says = any(isinstance(constant, CodeType) or constant == ("*",) for constant in step.co_consts)
        self.is_plain = self.is_plain and not _sets_attributes(step)
        names = step.co_names
        if self.is_plain and not says and all(type(namespace.get(name)) in _UNCHANGING for name in names):
            return frozenset(names)
        return None

    def changes(self, namespace: Mapping[str, Any], reach: Container[str] | None = None) -> str:
        """The line of what changed since the last one."""
        changed = []
        gone = list(self.texts.keys() - namespace.keys())
        for name, value in namespace.items():
            # The same object as before and one that cannot change; `self` stands for none, for it is no
            # value.
            if self.settled.get(name, self) is value or (reach is not None and name not in reach):
                continue
            text = self.encode(name, value)
            if text is None and name in self.texts:
                gone.append(name)
            elif text is not None and self.texts.get(name) != text:
                self.texts[name] = text
                changed.append(f"{text_to_json(name)}:{text}")
        for name in gone:
            del self.texts[name]
            self.settled.pop(name, None)
        return _line(changed, gone)

    def encode(self, name: str, value: object) -> str | None:
        """The text of a value, None for what is not a value; work is saved where nothing can have changed."""
        kind = type(value)
        self.settled.pop(name, None)
        if name.startswith("__") or _is_no_value(kind):
            return None
        if kind in _IMMUTABLE:
            self.settled[name] = value
            return encode_value(value)
        # A list may have changed behind another name, so it is looked at again after every step.
        fingerprint = _fingerprint(value)
        known = self.printed.get(name)
        if fingerprint is None or known is None or known[0] != fingerprint:
            known = (fingerprint or "", encode_value(value))
            self.printed[name] = known
        return known[1]


def _sets_attributes(code: CodeType) -> bool:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return _STORE_ATTR in code.co_code[::2] or any(map(_sets_attributes, inner))


class PlainRecord:
    """The same record made the slow way, every value anew: for programs that are traced a second time."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def reach(self, step: CodeType, namespace: Mapping[str, Any]) -> None:
        """Any variable may have changed."""

    def changes(self, namespace: Mapping[str, Any], reach: Container[str] | None = None) -> str:
        """The line of what changed since the last one, names in the order in which they were bound."""
        names = [name for name in namespace if not name.startswith("__")]
        texts = {
            name: encode_value(namespace[name]) for name in names if not _is_no_value(type(namespace[name]))
        }
        changed = [
            f"{text_to_json(name)}:{text}" for name, text in texts.items() if self.texts.get(name) != text
        ]
        gone = self.texts.keys() - texts.keys()
        self.texts = texts
        return _line(changed, gone)


def _line(changed: Iterable[str], gone: Iterable[str]) -> str:
    return f"[{{{','.join(changed)}}},[{','.join(map(text_to_json, sorted(gone)))}]]\n"


def _fingerprint(value: Any) -> str | None:
    """Equal only for equal contents; None if the value holds more than plain data."""
    try:
        return digest(marshal.dumps(value))
    except ValueError:
        return None


def _is_no_value(kind: type) -> bool:
    """Whether objects of this kind are modules, functions, classes or annotations."""
    return kind in NO_VALUES or issubclass(kind, (type, ModuleType))
