"""Whether an answer is right, the paper's isCorrect: checkers, of which a config names one, or a function.

A checker is any callable `(value, answer) -> bool`. `tests` is the exception: there the answer is a list of
assertions, and whoever runs programs runs the solution with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from partway.errors import ConfigError
from partway.execution.values import canonical
from partway.importing import import_path, imported

Checker: TypeAlias = Callable[[Any, Any], bool]

ABSOLUTE_TOLERANCE = 1e-4
RELATIVE_TOLERANCE = 1e-9


def is_correct(
    answer: Any,
    expected: Any,
    *,
    rel_tol: float = RELATIVE_TOLERANCE,
    abs_tol: float = ABSOLUTE_TOLERANCE,
) -> bool:
    """Numbers are close, values of other kinds are canonically equal; a bool or a string is no number.

    >>> is_correct(2, 2.00001), is_correct("2", 2), is_correct(True, 1), is_correct([1, 2.0], (1.0, 2))
    (True, False, False, True)
    """
    if not is_number(answer) or not is_number(expected):
        return is_number(answer) == is_number(expected) and canonical(answer) == canonical(expected)
    try:
        return math.isclose(answer, expected, rel_tol=rel_tol, abs_tol=abs_tol)
    except OverflowError:  # integers beyond floats are compared exactly
        return bool(answer == expected)
    except ValueError:  # a signalling NaN
        return False


def is_number(value: Any) -> bool:
    """Whether `value` is a real number: not a bool, not a complex."""
    return isinstance(value, (int, float, Fraction, Decimal)) and not isinstance(value, bool)


@dataclass(frozen=True)
class Close:
    """Numbers within a tolerance, other values equal.

    >>> Close(rel_tol=0.01, abs_tol=0.0)(101, 100), Close()(101, 100)
    (True, False)
    """

    rel_tol: float = RELATIVE_TOLERANCE
    abs_tol: float = ABSOLUTE_TOLERANCE

    def __post_init__(self) -> None:
        for name in ("rel_tol", "abs_tol"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"checker_{name} is {getattr(self, name)}, expected 0 or more")

    def __call__(self, value: Any, answer: Any) -> bool:
        return is_correct(value, answer, rel_tol=self.rel_tol, abs_tol=self.abs_tol)


def exact(value: Any, answer: Any) -> bool:
    """The same value as states compare it, digit by digit: 2 is 2.0, but 0.3333 is not a third.

    >>> exact(2, 2.0), exact(0.3333, 1 / 3), exact([1, 2], (1, 2))
    (True, False, True)
    """
    return canonical(value) == canonical(answer)


def passes_tests(value: Any, answer: Any) -> bool:
    """Stands for the tests, which need the whole solution and not only a value."""
    raise AssertionError("tests are run with the solution, see PythonPrograms.is_correct")


DEFAULT: Checker = Close()
TESTS: Checker = passes_tests  # known by identity: whoever runs programs asks `checker is TESTS`
NAMED: dict[str, Checker] = {"default": DEFAULT, "exact": exact, "close": Close(), "tests": TESTS}


def checker_of(settings: Mapping[str, Any]) -> Checker:
    """The checker that the keys `checker`, `checker_rel_tol` and `checker_abs_tol` describe."""
    name = settings.get("checker", "default")
    if name == "close":  # the only one with settings of its own
        return Close(
            float(settings.get("checker_rel_tol", RELATIVE_TOLERANCE)),
            float(settings.get("checker_abs_tol", ABSOLUTE_TOLERANCE)),
        )
    if name in NAMED:
        return NAMED[name]
    if ":" not in name:
        raise ConfigError(f"checker is {name!r}, expected {', '.join(NAMED)} or package.module:function")
    found: Checker = imported(name, "checker")
    if not callable(found):
        raise ConfigError(f"checker is {name!r}, expected a function (value, answer) -> bool")
    return found


def checker_settings(checker: Checker) -> dict[str, Any]:
    """The keys that `checker_of` makes `checker` of."""
    for name, one in NAMED.items():  # `default` before `close`, which is the same with the usual tolerances
        if checker == one:
            return {"checker": name}
    if isinstance(checker, Close):
        return {"checker": "close", "checker_rel_tol": checker.rel_tol, "checker_abs_tol": checker.abs_tol}
    return {"checker": import_path(checker)}


def tests_of(answer: Any) -> list[str]:
    """The assertions that an answer lists: texts, or calls with the value each should give.

    >>> tests_of(["assert double(2) == 4", ["double(3)", 6], {"call": "double('a')", "expected": "aa"}])
    ['assert double(2) == 4', 'assert (double(3)) == (6)', "assert (double('a')) == ('aa')"]
    """
    assert tests_flaw(answer) is None, "whoever reads problems refuses answers that are no tests"
    return [str(_assertion(test)) for test in answer]


def tests_flaw(answer: Any) -> str | None:
    """Why an answer is no list of tests, None if it is one."""
    if isinstance(answer, (list, tuple)) and answer and all(map(_assertion, answer)):
        return None
    return f"expected a list of assertions or of [call, expected value], found {str(answer)[:60]!r}"


def _assertion(test: Any) -> str | None:
    match test:
        case str():
            return test
        case [str() as call, expected] | {"call": str() as call, "expected": expected}:
            return f"assert ({call}) == ({expected!r})"
    return None
