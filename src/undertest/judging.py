"""Whether a program passes its tests, decided where it never ran.

A program that ran its own tests could pass them all: with a value that equals everything, with another `abs`,
by ending the process. So the tests run in a process of their own, in which the functions of the program are
stand-ins (`stand_ins.py`). First these note with which arguments the tests call them; the program's process
makes these calls; then the tests run on what they gave, rebuilt from plain data.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from straightline import BoundedCache, Execution, parse
from straightline.parsing import UNPARSABLE, parse_tree
from undertest import stand_ins
from undertest.stand_ins import NotPlain, Outcome, spelled

MAX_ROUNDS = 12  # in which tests ask for calls: more than one where they hang on what others gave
# Variables of the two processes.
ASKED, ODD, PASSED = "calls_asked_for", "calls_never_made", "all_tests_passed"
CALL = "value_of_call"

Tests = tuple[str, ...]
# Runs programs, tuples of steps, each in a process of its own, and says what each step changed.
Room: TypeAlias = Callable[[Sequence[tuple[str, ...]]], list[Execution]]

_STAND_INS = tuple(
    ast.unparse(node) for node in ast.parse(Path(stand_ins.__file__).read_text(encoding="utf-8")).body[1:]
)
_BUILTINS = frozenset(dir(builtins))
_ITERATORS = re.compile(r"generator|map|filter|zip|enumerate|reversed|chain|islice|\w*iterator|dict_\w+")
_RANGE = re.compile(r"range\((-?\d+), (-?\d+)(?:, (-?\d+))?\)", re.ASCII)
_memo = BoundedCache[tuple[str, Tests], bool](16 << 20, lambda key, _: 200 + sum(map(len, (key[0], *key[1]))))


def passes(text: str, tests: Tests, run: Room, *, anew: bool = False) -> bool:
    """Whether the functions of a program pass tests, which are statements; `anew` asks no memory."""
    found = None if anew else _memo.get((text, tests))
    if found is None:
        parsed = parse(text, "")
        found = parsed.error is None and _passes(_Program(parsed.steps, run), tests)
        if found is not None and not anew:
            _memo.put((text, tests), found)
    return bool(found)


def _passes(program: _Program, tests: Tests) -> bool | None:
    """None if a limit was met, which may not happen again."""
    run = program.run
    calls = list(_first(tests, run).asked)
    for _ in range(MAX_ROUNDS):
        if not program.make(calls):
            return None if program.is_exhausted else False
        verdict = _judged(tests, program.known, run)
        if not verdict.asked:
            return verdict.passed and not verdict.odd
        # Some calls hang on what others gave, or come after one that raised.
        missing = _judged(tests, program.known, run, guarded=True).asked
        if not missing:
            return False
        calls += missing
    return False


def objection(tests: Tests, run: Room) -> str | None:
    """Why no program can pass these tests here, None if one can."""
    try:
        tree = parse_tree("\n".join(tests))
    except UNPARSABLE as error:
        return f"its tests are not Python: {error}"
    if not _names_under_test(tree):
        return "its tests call no function of a program"
    first = _first(tests, run)
    if first.odd:
        return f"a test gives {first.odd[0]}() something that is not plain data"
    return None if first.asked else f"its tests do not run: {first.failure or 'they never call the function'}"


@dataclass(frozen=True)
class _Verdict:
    """What became of tests: whether all hold, the calls that were missing, those that cannot be made."""

    passed: bool
    asked: list[str]
    odd: list[str]
    failure: str


@lru_cache(maxsize=4_096)
def _first(tests: Tests, run: Room) -> _Verdict:
    """The tests before any call was made: they ask for those that hang on no other."""
    return _judged(tests, {}, run, guarded=True)


def _judged(tests: Tests, known: dict[str, list[Outcome]], run: Room, *, guarded: bool = False) -> _Verdict:
    """The tests on what calls gave; with a guard, what fails is passed over, so that they ask for all."""
    tree = parse_tree("\n".join(tests))
    names = _names_under_test(tree)
    body = [_Guard().visit(node) for node in tree.body] if guarded else tree.body
    passed = ast.parse(f"{PASSED} = True").body
    steps = [
        *_STAND_INS,
        *(f"import {name}" for name in sorted(_modules(tree))),
        f"{ASKED}, {ODD}, {PASSED} = [], [], False",
        f"[{', '.join(names)}] = stand_ins({names!r}, {spelled(known)}, {ASKED}, {ODD})",
        ast.unparse(_passed_over([*body, *passed])),  # one step, so that what it asked for is recorded
    ]
    (done,) = run([tuple(steps)])
    held = {name: value[0] for changed in done.changes for name, value in changed.items() if value}
    return _Verdict(
        done.failure is None and held.get(PASSED) is True,
        held.get(ASKED, []),
        held.get(ODD, []),
        done.failure.message if done.failure else "",
    )


class _Program:
    """A program under test and what its calls gave, each time made anew in a process of its own."""

    def __init__(self, steps: tuple[str, ...], run: Room) -> None:
        self.steps, self.run = steps, run
        self.known: dict[str, list[Outcome]] = {}
        self.raised: dict[str, Outcome] = {}
        self.iterators: set[str] = set()  # calls that give one: what is in it is asked for
        self.is_exhausted = False

    def make(self, calls: Sequence[str]) -> bool:
        """Make calls up to the first that raises; False if the program itself fails, or meets a limit."""
        made = [call for call in calls if call not in self.raised]
        texts = [f"[*{call}]" if call in self.iterators else call for call in made]
        (done,) = self.run([(*self.steps, *(f"{CALL} = {text}" for text in texts))])
        values = list(_values(done))[len(self.steps) :]
        if found := {call for call, value in zip(made, values, strict=False) if _is_iterator(value)}:
            self.iterators |= found
            return self.make(calls)
        self.known = {call: [self.raised[call]] * calls.count(call) for call in self.raised}
        for call, value in zip(made, values, strict=False):
            what, *content = _outcome(value)
            if what == "value" and call in self.iterators:
                what = "iterator"
            self.known.setdefault(call, []).append((what, *content))
        if done.failure is None:
            return True
        if done.failure.kind != "error" or done.failure.step < len(self.steps):
            self.is_exhausted = done.failure.kind in ("timeout", "memory")
            return False
        kind, _, message = done.failure.message.partition(": ")
        failed = made[done.failure.step - len(self.steps)]
        self.raised[failed] = ("raised", kind, message)
        self.known[failed] = [self.raised[failed]] * calls.count(failed)
        return True


def _values(done: Execution) -> Iterator[Any]:
    """What the variable for calls held after each step."""
    held: Any = None
    for changed in done.changes:
        held = (changed.get(CALL) or (None,))[0] if CALL in changed else held
        yield held


def _is_iterator(value: Any) -> bool:
    return _ITERATORS.fullmatch(getattr(value, "type_name", "")) is not None


def _outcome(value: Any) -> Outcome:
    """What a value becomes for the tests: plain data, or an object that equals nothing."""
    if found := _RANGE.fullmatch(getattr(value, "type_name", "")):
        return "value", range(*(int(part) for part in found.groups() if part))
    try:
        spelled(value)
    except NotPlain:
        return ("object",)
    return "value", value


class _Guard(ast.NodeTransformer):
    """Passes over what fails, statement by statement."""

    def visit(self, node: ast.AST) -> Any:
        found = self.generic_visit(node)
        if not isinstance(node, ast.stmt) or isinstance(node, _UNGUARDED):
            return found
        return _passed_over([node])


def _passed_over(body: list[ast.stmt]) -> ast.Try:
    return ast.Try(body, [ast.ExceptHandler(None, None, [ast.Pass()])], [], [])


_UNGUARDED = (ast.FunctionDef, ast.ClassDef, ast.Global, ast.Nonlocal, ast.Break, ast.Continue, ast.Return)


def _names_under_test(tree: ast.Module) -> list[str]:
    """The names that tests use without binding them: what a program has to define.

    A function under test may be called as one of Python's is, if the tests call no other.
    """
    free = _free_names(tree) - _modules(tree)
    if free - _BUILTINS:
        return sorted(free - _BUILTINS)
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [func.id for func in calls if isinstance(func, ast.Name) and func.id in free][:1]


def _modules(tree: ast.Module) -> set[str]:
    """Modules of Python that tests use although only the program may have imported them."""
    nodes = (node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    return used & _free_names(tree) & sys.stdlib_module_names


def _free_names(tree: ast.Module) -> set[str]:
    read, bound = set(), set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                read.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.alias(name=name, asname=other):
                bound.add(other or name.partition(".")[0])
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                bound.add(name)
    return read - bound
