"""Decides whether a program passes its tests, in a process in which the program never ran.

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

MAX_ROUNDS = 40  # in which tests ask for calls: more than one where they hang on what others gave
MAX_PARTS = 12  # in which the calls are told
# Variables of the two processes.
CALLS, ASKED, ODD, PASSED = "calls_of_tests", "calls_asked_for", "calls_never_made", "all_tests_passed"
CALL = "value_of_call"

Tests = tuple[str, ...]
# Runs programs, tuples of steps, each in a process of its own, and says what each step changed.
Room: TypeAlias = Callable[[Sequence[tuple[str, ...]]], list[Execution]]

_STAND_INS = tuple(
    ast.unparse(node) for node in ast.parse(Path(stand_ins.__file__).read_text(encoding="utf-8")).body[1:]
)
_BUILTINS = frozenset(dir(builtins))
_ITERATORS = re.compile(r"generator|map|filter|zip|enumerate|reversed|chain|islice|\w*iterator|dict_\w+")
_OBJECT = re.compile(r"object_\d+", re.ASCII)
_SETS = re.compile(r"object_\d+\.\w+ = ").match
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
    calls = _first(tests, run).asked
    for _ in range(MAX_ROUNDS):
        if not program.make(calls):
            return None if program.is_exhausted else False
        verdict = _judged(tests, program.made, run)
        if not verdict.is_new:
            return verdict.passed and not verdict.odd
        # Some calls hang on what others gave, or come after one that raised.
        calls = _judged(tests, program.made, run, guarded=True).asked
        if calls == program.calls:
            return False
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
        return f"a test gives {first.odd[0]}"
    return None if first.asked else f"its tests do not run: {first.failure or 'they never call the function'}"


@dataclass(frozen=True)
class _Verdict:
    """What became of tests: whether all hold, their calls, whether some were not made, or cannot be."""

    passed: bool
    asked: list[str]
    is_new: bool
    odd: list[str]
    failure: str


@lru_cache(maxsize=4_096)
def _first(tests: Tests, run: Room) -> _Verdict:
    """The tests before any call was made: they ask for those that hang on no other."""
    return _judged(tests, [], run, guarded=True)


def _judged(tests: Tests, made: list[tuple[str, Outcome]], run: Room, *, guarded: bool = False) -> _Verdict:
    """The tests on what calls gave; with a guard, what fails is passed over, so that they ask for all."""
    tree = parse_tree("\n".join(tests))
    names, modules = _names_under_test(tree), _modules(tree)
    steps = [
        *_STAND_INS,
        *(f"import {name}" for name in sorted(modules)),
        f"{PASSED}, {CALLS} = False, CallsOfTests({spelled(made)})",
        *(f"{name}_of_program = FunctionOfProgram({name!r}, {CALLS})" for name in names),
        _as_one_step(_Told(names, modules | _imported(tree)).visit(tree).body, guarded),
        f"{ODD} = [{CALLS}.is_new, len({CALLS}.asked), *{CALLS}.odd]",
        *(f"{ASKED} = {part}, {CALLS}.told({part})" for part in range(MAX_PARTS)),
    ]
    (done,) = run([tuple(steps)])
    held = {name: value[0] for changed in done.changes for name, value in changed.items() if value}
    is_new, count, *odd = held.get(ODD, (True, 0))
    parts = (changed.get(ASKED) for changed in done.changes)
    asked = [call for part in parts if part for call in part[0][1]]
    if len(asked) != count:
        odd.append(f"{', '.join(names)} too many calls")
    passed = done.failure is None and held.get(PASSED) is True
    return _Verdict(passed, asked, is_new, odd, done.failure.message if done.failure else "")


def _as_one_step(body: list[ast.stmt], guarded: bool) -> str:
    """So that what tests asked for is recorded, whatever they raise."""
    body = [_Guard().visit(node) for node in body] if guarded else body
    return ast.unparse(_passed_over([*body, *ast.parse(f"{PASSED} = True").body]))


class _Program:
    """A program under test and what its calls gave, each time made anew in a process of its own."""

    def __init__(self, steps: tuple[str, ...], run: Room) -> None:
        self.steps, self.run = steps, run
        self.calls: list[str] = []
        self.made: list[tuple[str, Outcome]] = []
        self.raised: dict[int, Outcome] = {}  # what calls raised, by their number
        self.iterators: set[str] = set()  # calls that give one: what is in it is asked for
        self.is_exhausted = False

    def make(self, calls: list[str]) -> bool:
        """Make calls, in order; False if the program itself fails, or meets a limit."""
        pairs = enumerate(zip(calls, self.calls, strict=False))
        same = next((number for number, (new, old) in pairs if new != old), len(self.calls))
        self.raised = {number: raised for number, raised in self.raised.items() if number < same}
        self.calls = calls
        while (finished := self._run()) is None:
            pass
        return finished

    def _run(self) -> bool | None:
        """None if a call raised, or gave an iterator, for the first time: it is made otherwise then."""
        (done,) = self.run([(*self.steps, *self._made_steps())])
        values = list(_values(done))[len(self.steps) :]
        found = {call for call, value in zip(self.calls, values, strict=False) if _is_iterator(value)}
        if found - self.iterators:
            self.iterators |= found
            return None
        if done.failure is not None:
            number = done.failure.step - len(self.steps)
            if done.failure.kind != "error" or number < 0:
                self.is_exhausted = done.failure.kind in ("timeout", "memory")
                return False
            kind, _, message = done.failure.message.partition(": ")
            self.raised[number] = ("raised", kind, message)
            return None
        self.made = [
            (call, self.raised.get(number) or _outcome(value, call in self.iterators))
            for number, (call, value) in enumerate(zip(self.calls, values, strict=True))
        ]
        return True

    def _made_steps(self) -> Iterator[str]:
        used = set(_OBJECT.findall(" ".join(self.calls)))
        for number, call in enumerate(self.calls):
            if number in self.raised:
                yield f"try:\n    {call}\nexcept:\n    pass"  # for what else it does
            elif _SETS(call):
                yield call
            elif call in self.iterators:
                yield f"{CALL} = ([*{call}],)"
            elif (name := f"object_{number}") in used:
                yield f"{CALL} = ({name} := {call},)"
            else:
                yield f"{CALL} = ({call},)"


def _values(done: Execution) -> Iterator[Any]:
    """What the last call had given after each step."""
    held: Any = None
    for changed in done.changes:
        match changed.get(CALL):
            case ((held,),):
                pass
        yield held


def _is_iterator(value: Any) -> bool:
    return _ITERATORS.fullmatch(getattr(value, "type_name", "")) is not None


def _outcome(value: Any, is_iterator: bool) -> Outcome:
    """What a value becomes for the tests: plain data, or an object that equals nothing."""
    if found := _RANGE.fullmatch(getattr(value, "type_name", "")):
        return "value", range(*(int(part) for part in found.groups() if part))
    try:
        spelled(value)
    except NotPlain:
        return ("object",)
    return "iterator" if is_iterator else "value", value


class _Told(ast.NodeTransformer):
    """Puts stand-ins into tests: for functions, attributes of objects, and calls that are statements."""

    def __init__(self, names: Sequence[str], modules: set[str]) -> None:
        self.names = names
        self.modules = modules

    def visit_Name(self, node: ast.Name) -> ast.expr:
        # Under another name: that of a function may be one that the stand-ins need.
        return ast.Name(f"{node.id}_of_program", node.ctx) if node.id in self.names else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        found = self.generic_visit(node)
        assert isinstance(found, ast.Attribute)
        return self._asked(found, "read_by_tests")

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Attribute):
            owner = ast.Attribute(self.visit(node.func.value), node.func.attr, ast.Load())
            func: ast.expr = self._asked(owner, "method_for_tests")
        else:
            func = self.visit(node.func)
        keywords = [ast.keyword(one.arg, self.visit(one.value)) for one in node.keywords]
        return ast.Call(func, [self.visit(argument) for argument in node.args], keywords)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """A statement that only calls a function: what it does to its arguments is what is tested."""
        match node.value:
            case ast.Call(ast.Name(name) as func, args, []) if name in self.names:
                change = ast.Attribute(self.visit(func), "change", ast.Load())
                return ast.Expr(ast.Call(change, [self.visit(argument) for argument in args], []))
        return ast.Expr(self.visit(node.value))

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        match node:
            case ast.Assign([ast.Attribute(owner, name)], value):
                asked = ast.Call(
                    ast.Name("set_by_tests", ast.Load()),
                    [self.visit(owner), ast.Constant(name), self.visit(value)],
                    [],
                )
                return ast.If(ast.UnaryOp(ast.Not(), asked), [node], [])
        found = self.generic_visit(node)
        assert isinstance(found, ast.stmt)
        return found

    def _asked(self, node: ast.Attribute, how: str) -> ast.expr:
        if not isinstance(node.ctx, ast.Load) or not self._may_be_of_program(node):
            return node
        it = ast.arguments([], [ast.arg("it")], None, [], [], None, [])
        plainly = ast.Lambda(it, ast.Attribute(ast.Name("it", ast.Load()), node.attr, ast.Load()))
        return ast.Call(ast.Name(how, ast.Load()), [node.value, ast.Constant(node.attr), plainly], [])

    def _may_be_of_program(self, node: ast.Attribute) -> bool:
        if node.attr.startswith("__") or node.attr == "format":
            return False
        is_module = isinstance(node.value, ast.Name) and node.value.id in self.modules
        return not is_module and not isinstance(node.value, (ast.Constant, ast.JoinedStr))


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


def _imported(tree: ast.Module) -> set[str]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Import))
    return {alias.asname or alias.name for node in nodes for alias in node.names}


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
