"""Stand-ins for the functions of a program, in the process that runs its tests.

That process never sees the program. What it runs begins with this file, which keeps to what programs may say.
"""

from decimal import Decimal
from fractions import Fraction
from typing import Any

Outcome = tuple[Any, ...]  # ("value", v), ("iterator", items), ("object",) or ("raised", kind, message)

MAX_TOLD = 24_000  # characters of calls that are told at once, and of one call

_EXCEPTIONS = (
    *(ArithmeticError, AssertionError, AttributeError, Exception, IndexError, KeyError, LookupError),
    *(NameError, NotImplementedError, OSError, OverflowError, RecursionError, TypeError, UnicodeError),
    *(ValueError, ZeroDivisionError),
)
_RAISED = {repr(kind)[8:-2]: kind for kind in _EXCEPTIONS}
_CLASSES = (bool, bytes, complex, dict, float, frozenset, int, list, object, set, str, tuple, *_EXCEPTIONS)


class NotPlain(Exception):
    """A test gives a function something that cannot be written down."""


class NotYet(Exception):
    """A test gives a function what another call has to give first."""


class UnknownToTests:
    """What a call would give that was not made yet: whatever comes next is to be reached."""

    def __eq__(self, other: object) -> bool:
        return True

    def __lt__(self, other: Any) -> bool:
        return True

    def __sub__(self, other: Any) -> Any:
        return self

    def __abs__(self) -> Any:
        return self

    def __hash__(self) -> int:
        return 0

    def __iter__(self) -> Any:
        return iter([self])

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self


class CallsOfTests:
    """The calls that tests make, in order, with what those made so far gave."""

    def __init__(self, made: list[tuple[str, Outcome]]) -> None:
        self.made = made
        self.asked: list[str] = []
        self.odd: list[str] = []  # what is given something that cannot be written down
        self.is_new = False  # what comes next was not made, or after other calls than these

    def give(self, call: str) -> Any:
        number = len(self.asked)
        self.asked.append(call)
        self.is_new = self.is_new or number >= len(self.made) or self.made[number][0] != call
        if self.is_new:
            return UnknownToTests()
        what, *content = self.made[number][1]
        if what == "raised":
            raise _RAISED.get(content[0], RuntimeError)(content[1])
        if what == "object":
            return ObjectOfProgram(f"object_{number}", self)
        return iter(content[0]) if what == "iterator" else content[0]

    def told(self, part: int) -> list[str]:
        """A part of the calls, short enough to be recorded."""
        parts: list[list[str]] = [[]]
        length = 0
        for call in self.asked:
            length += len(call) + 8
            if length > MAX_TOLD:
                parts.append([])
                length = len(call) + 8
            parts[-1].append(call)
        return parts[part] if part < len(parts) else []


class FunctionOfProgram:
    """Stands for a function of the program: a call gives what that call of it gave."""

    def __init__(self, name: str, calls: CallsOfTests) -> None:
        self.name = name
        self.calls = calls

    def __call__(self, *given: Any, **named: Any) -> Any:
        spelling = self.spelled(given, named)
        return UnknownToTests() if spelling is None else self.calls.give(f"{self.name}({spelling})")

    def change(self, *given: Any) -> Any:
        """A call for what it does to its arguments: tests take nothing of it."""
        spelling = self.spelled(given, {})
        if spelling is None:
            return UnknownToTests()
        found = self.calls.give(f"(lambda *given: [{self.name}(*given), *given])({spelling})")
        if isinstance(found, list):
            for old, new in zip(given, found[1:], strict=False):
                _refill(old, new)
        return None

    def spelled(self, given: Any, named: dict[str, Any]) -> str | None:
        try:
            parts = [spelled(value) for value in given]
            parts += [f"{name}={spelled(value)}" for name, value in named.items()]
        except NotYet:
            return None
        except NotPlain:
            self.calls.odd.append(f"{self.name}() something that is not plain data")
            return None
        if sum(map(len, parts)) > MAX_TOLD - 200:
            self.calls.odd.append(f"{self.name}() more than {MAX_TOLD} characters")
            return None
        return ", ".join(parts)


def _refill(old: Any, new: Any) -> None:
    if isinstance(old, list) and isinstance(new, list):
        old[:] = new
    elif isinstance(old, (dict, set)) and type(old) is type(new):
        old.clear()
        old.update(new)


class ObjectOfProgram:
    """What a call gave that is not plain data: it may be used in other calls, and equals nothing."""

    def __init__(self, name: str, calls: CallsOfTests) -> None:
        self.name = name
        self.calls = calls

    def __eq__(self, other: object) -> bool:
        if other is None:
            return False
        raise TypeError(f"{self.name} of the program cannot be compared")


def read_by_tests(owner: Any, name: str, plainly: Any) -> Any:
    """An attribute, of an object of the program or of any other."""
    if type(owner) is ObjectOfProgram:
        return owner.calls.give(f"{owner.name}.{name}")
    return owner if type(owner) is UnknownToTests else plainly(owner)


def method_for_tests(owner: Any, name: str, plainly: Any) -> Any:
    """An attribute that is called at once."""
    if type(owner) is ObjectOfProgram:
        return FunctionOfProgram(f"{owner.name}.{name}", owner.calls)
    return owner if type(owner) is UnknownToTests else plainly(owner)


def set_by_tests(owner: Any, name: str, value: Any) -> bool:
    """Whether that was an object of the program, whose attribute is set now."""
    if type(owner) is ObjectOfProgram:
        setter = FunctionOfProgram(f"{owner.name}.{name}", owner.calls)
        spelling = setter.spelled([value], {})
        if spelling is not None:
            owner.calls.give(f"{owner.name}.{name} = {spelling}")
    return type(owner) is ObjectOfProgram or type(owner) is UnknownToTests


def spelled(value: Any) -> str:
    """A plain value as an expression; NotPlain if it is something else.

    >>> spelled([1, -2.5, {"a": (True,)}, float("inf"), set(), int])
    "[1, -2.5, {'a': (True, )}, 1e999, {*()}, int]"
    """
    kind = type(value)
    if kind in (int, str, bytes, bool) or value is None:
        return repr(value)
    if kind is float or kind is complex:
        return repr(value).replace("inf", "1e999").replace("nan", "(1e999-1e999)")
    if kind is list:
        return f"[{', '.join(map(spelled, value))}]"
    if kind is tuple:
        return f"({''.join(f'{spelled(item)}, ' for item in value)})"
    if kind is set:
        return f"{{{', '.join(map(spelled, value)) or '*()'}}}"
    if kind is frozenset:
        return f"frozenset({spelled(set(value))})"
    if kind is dict:
        return f"{{{', '.join(f'{spelled(key)}: {spelled(item)}' for key, item in value.items())}}}"
    if kind in (range, Fraction, Decimal):
        return repr(value)
    if kind is ObjectOfProgram:
        return str(value.name)
    if kind is UnknownToTests:
        raise NotYet
    for one in _CLASSES:
        if value is one:
            return repr(one)[8:-2]
    raise NotPlain
