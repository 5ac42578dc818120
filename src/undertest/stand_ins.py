"""What stands beside tests in the process that runs them: stand-ins for the functions of a program.

That process never sees the program. Its text begins with this file, which keeps to what programs may say.
"""

from decimal import Decimal
from fractions import Fraction
from typing import Any

Outcome = tuple[Any, ...]  # ("value", v), ("iterator", items), ("object",) or ("raised", kind, message)

_EXCEPTIONS = (
    *(ArithmeticError, AssertionError, AttributeError, Exception, IndexError, KeyError, LookupError),
    *(NameError, NotImplementedError, OSError, OverflowError, RecursionError, TypeError, UnicodeError),
    *(ValueError, ZeroDivisionError),
)
_KINDS = {repr(kind)[8:-2]: kind for kind in _EXCEPTIONS}


class NotPlain(Exception):
    """A test gives a function something that cannot be written down."""


class NotYet(Exception):
    """A test gives a function what another call has to give first."""


class Object:
    """What a call gave that is not plain data: it may be given to other calls, and equals nothing."""

    def __init__(self, call: str) -> None:
        self.call = call

    def __eq__(self, other: object) -> bool:
        raise TypeError(f"{self.call} gives an object, which cannot be compared")

    def __bool__(self) -> bool:
        raise TypeError(f"{self.call} gives an object, which is neither true nor false")


class Unknown:
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


def spelled(value: Any) -> str:
    """A plain value as an expression; NotPlain if it is something else.

    >>> spelled([1, -2.5, {"a": (True,)}, float("inf"), set()])
    "[1, -2.5, {'a': (True, )}, 1e999, {*()}]"
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
    if kind is Object:
        return str(value.call)
    raise NotYet if kind is Unknown else NotPlain


class StandIn:
    """Stands for a function of the program: it gives what calls of it gave, and notes those not made yet."""

    def __init__(self, name: str, known: dict[str, list[Outcome]], asked: list[str], odd: list[str]) -> None:
        self._name = name
        self._known = known
        self._asked = asked
        self._odd = odd
        self._made: dict[str, int] = {}

    def __call__(self, *given: Any, **named: Any) -> Any:
        try:
            spelling = [spelled(value) for value in given]
            spelling += [f"{name}={spelled(value)}" for name, value in named.items()]
        except NotYet:
            return Unknown()
        except NotPlain:
            self._odd.append(self._name)
            return Unknown()
        call = f"{self._name}({', '.join(spelling)})"
        number = self._made.get(call, 0)
        self._made[call] = number + 1
        outcomes = self._known.get(call, [])
        if number >= len(outcomes):
            self._asked.append(call)
            return Unknown()
        return _given(call, outcomes[number])


def _given(call: str, outcome: Outcome) -> Any:
    what, *content = outcome
    if what == "raised":
        raise _KINDS.get(content[0], RuntimeError)(content[1])
    if what == "object":
        return Object(call)
    return iter(content[0]) if what == "iterator" else content[0]


def stand_ins(
    names: list[str], known: dict[str, list[Outcome]], asked: list[str], odd: list[str]
) -> list[StandIn]:
    """One for each name."""
    return [StandIn(name, known, asked, odd) for name in names]
