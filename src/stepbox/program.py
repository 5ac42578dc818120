"""One program, run step by step in a world of its own, and the record of what each step changed.

The world is a short list of builtins and fresh, curated stand-ins for modules: a stand-in holds a module's
public names only, nothing of `sys` or `os` hangs on it, and what a program does to it ends with the program.
The record is made outside the program's reach, from encoded values only: no method of a program's own class
is ever called for it.
"""

from __future__ import annotations
import __future__

import ast
import bisect
import builtins
import collections
import copy
import dataclasses
import decimal
import fractions
import functools
import heapq
import itertools
import marshal
import math
import operator
import random
import re
import statistics
import string
import sys
import types
import typing
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from opcode import opmap
from signal import ITIMER_PROF, setitimer
from types import CodeType, ModuleType, NoneType
from typing import Any

from stepbox.screen import Screened, refusals, screen
from stepbox.walls import grant_reserve
from stepbox.wire import MAX_NAME, TOO_LARGE, IntegerTooLarge, digest, encode_value, text_to_json

MAX_MESSAGE = 300
MAX_SHOWN = 10**100

Reason = tuple[str, str]  # the kind of a failure and its message
Step = CodeType | Reason  # ready to run, or the reason why it never will be

_IMMUTABLE = frozenset({int, float, bool, NoneType, str, bytes, complex, Fraction, Decimal, range})
_UNCHANGING = _IMMUTABLE | {ModuleType}  # a module holds lists only if a program puts them there
_STORE_ATTR = opmap["STORE_ATTR"]
_CALLABLES = frozenset(
    {
        types.FunctionType,
        types.BuiltinFunctionType,
        types.MethodType,
        types.MethodDescriptorType,
        types.ClassMethodDescriptorType,
        types.MethodWrapperType,
        types.WrapperDescriptorType,
        types.GenericAlias,
        types.UnionType,
        functools.partial,
        operator.itemgetter,
        # The next two have no name under which they could be imported.
        type(functools.lru_cache(ord)),
        type(__future__.division),
    }
)


def _discard(*values: object, **options: object) -> None:
    """Stands for `print`: nobody listens."""


def _class_of(value: object) -> Any:
    """Stands for `type` of one argument: that of three, like any metaclass, makes classes unscreened."""
    kind = type(value)
    return _class_of if issubclass(kind, type) else kind


_class_of.__qualname__ = "type"  # as error messages call it


def _unchanged_wrapper(wrapped: object) -> Callable[[Any], Any]:
    """Stands for `functools.wraps`, whose only effect is on names a program cannot read."""
    return lambda wrapper: wrapper


class Random(random.Random):
    """Stands for `random.Random`: without a seed, numbers are the same in all workers of a layout."""

    layout = 0

    def seed(self, a: Any = None, version: int = 2) -> None:
        super().seed(self.layout if a is None else a, version)


_SHARED_RANDOM = Random()


def _public(module: ModuleType, leave_out: Sequence[str] = ()) -> dict[str, Any]:
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    return {name: getattr(module, name) for name in names if name not in leave_out}


def _chosen(module: object, names: str) -> dict[str, Any]:
    return {name: getattr(module, name) for name in names.split()}


_FLAGS = "A ASCII DOTALL I IGNORECASE M MULTILINE S VERBOSE X"
# Not `Type`, whose subclasses would be metaclasses, nor what evaluates annotations or reads them.
_ANNOTATIONS = (
    "Any AnyStr Callable ClassVar Collection Container Counter DefaultDict Deque Dict Final FrozenSet "
    "Generator Generic Hashable Iterable Iterator List Literal Mapping MutableMapping MutableSequence "
    "MutableSet NamedTuple NewType NoReturn Optional OrderedDict Reversible Sequence Set Sized Text Tuple "
    "TypeVar Union cast"
)
_HASHES: dict[str, Any] = {  # `hashlib` would load all of OpenSSL into workers, which are to be small
    name: getattr(import_module(module), name)
    for name, module in (("md5", "_md5"), ("sha1", "_sha1"), ("sha256", "_sha256"), ("sha256", "_sha2"))
    if find_spec(module)
}
_TYPING = _chosen(typing, _ANNOTATIONS)
_ANNOTATION_KINDS = frozenset(map(type, _TYPING.values())) | {
    *(type(_TYPING[name][int]) for name in ("List", "Optional", "ClassVar", "Literal")),
    *(type(_TYPING["Callable"][[], int]), type(_TYPING["TypeVar"]("T")), type(_TYPING["NewType"]("T", int))),
}
_MODULES: Mapping[str, Mapping[str, Any]] = {
    "math": _public(math),
    "itertools": _public(itertools),
    "statistics": _public(statistics),
    "fractions": _chosen(fractions, "Fraction"),
    "decimal": _public(decimal, leave_out=("DefaultContext", "BasicContext", "ExtendedContext")),
    "collections": _chosen(collections, "ChainMap Counter OrderedDict defaultdict deque namedtuple"),
    "functools": {
        **_chosen(functools, "cache cmp_to_key lru_cache partial reduce total_ordering"),
        "wraps": _unchanged_wrapper,
    },
    "__future__": _public(__future__, leave_out=("all_feature_names",)),
    "bisect": _chosen(bisect, "bisect bisect_left bisect_right insort insort_left insort_right"),
    "copy": _chosen(copy, "copy deepcopy"),
    # Not `make_dataclass`, which makes classes of names and methods that were not screened.
    "dataclasses": _chosen(dataclasses, "asdict astuple dataclass field fields is_dataclass replace"),
    "hashlib": _HASHES,
    "heapq": _public(heapq),
    "operator": _public(operator, leave_out=("attrgetter", "methodcaller")),  # these read attributes by name
    "random": {
        **_chosen(
            _SHARED_RANDOM,
            "betavariate choice choices expovariate gauss getrandbits normalvariate randint random randrange "
            "sample seed shuffle triangular uniform",
        ),
        "Random": Random,
    },
    "re": {
        **_chosen(re, "compile error escape findall finditer fullmatch match search split sub subn"),
        # As numbers: their class could make enumerations of any module's contents.
        **{name: int(getattr(re, name)) for name in _FLAGS.split()},
    },
    "string": {name: text for name, text in vars(string).items() if type(text) is str and name[0] != "_"}
    | {"capwords": string.capwords},
    "sys": {**_chosen(sys, "float_info maxsize maxunicode"), "setrecursionlimit": _discard},
    "typing": _TYPING,
}
_EXCEPTIONS = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, BaseException)
}
_SHARED_BUILTINS = {
    **_chosen(
        builtins,
        "abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate "
        "filter float format frozenset hash hex int isinstance issubclass iter len list map max min next "
        "object oct ord pow property range repr reversed round set slice sorted staticmethod str sum super "
        "tuple zip Ellipsis NotImplemented __build_class__",
    ),
    **_EXCEPTIONS,
    "print": _discard,
    "type": _class_of,
}
BUILTIN_EXCEPTIONS = frozenset(_EXCEPTIONS.values())


def fresh_namespace() -> dict[str, Any]:
    """Globals for one program, shared with no other."""
    own_builtins = dict(_SHARED_BUILTINS)
    own_builtins["__import__"] = _importer()
    return {"__name__": "__main__", "__builtins__": own_builtins}


def _importer() -> Callable[..., ModuleType]:
    """An `__import__` that knows the stand-ins of one program and nothing else."""
    # A name that `sys.modules` does not have: what a stand-in lacks, `from X import a` looks for there.
    stand_ins = {name: ModuleType(f"<{name}>") for name in _MODULES}
    for name, contents in _MODULES.items():
        vars(stand_ins[name]).update(contents)

    def import_stand_in(
        name: str, globals: object = None, locals: object = None, fromlist: Any = (), level: int = 0
    ) -> ModuleType:
        if level or name not in stand_ins:
            raise ImportError(f"import of {name!r} is not allowed")
        for wanted in fromlist or ():
            if wanted != "*" and wanted not in vars(stand_ins[name]):
                raise ImportError(f"cannot import name {wanted!r} from {name!r}")
        return stand_ins[name]

    return import_stand_in


def _tick() -> float:
    """What the kernel adds whenever the timer is set."""
    before, _ = setitimer(ITIMER_PROF, 100.0)
    found, _ = setitimer(ITIMER_PROF, before)
    return found - 100.0


_TICK = _tick()


def settle_modules() -> None:
    """Give what modules keep for a whole thread one beginning, the same for every program."""
    # Python's own defaults, spelled out: what this process was started with must not matter.
    context = decimal.Context(
        prec=28,
        rounding=decimal.ROUND_HALF_EVEN,
        Emin=-999999,
        Emax=999999,
        capitals=1,
        clamp=0,
        flags=[],
        traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
    )
    decimal.setcontext(context)
    # Another beginning in the other layout: what hangs on these numbers is not reproducible.
    Random.layout = sys.flags.hash_randomization
    random.seed(Random.layout)  # NormalDist.samples draws from the shared generator
    _SHARED_RANDOM.seed()


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
        self.is_plain = True  # no function, class or generator was made, and no attribute set

    def reach(self, step: CodeType, namespace: Mapping[str, Any]) -> Container[str] | None:
        """The variables that a step, about to run, can change; None if it may be any.

        In a plain program a step can bind the names that it says, and change what it reads by name.
        """
        says = any(isinstance(constant, CodeType) or constant == ("*",) for constant in step.co_consts)
        self.is_plain = self.is_plain and not says and _STORE_ATTR not in step.co_code[::2]
        names = step.co_names
        if self.is_plain and all(type(namespace.get(name)) in _UNCHANGING for name in names):
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
        """The text of a value, None for what is no value; work is saved where nothing can have changed."""
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
    return kind in _CALLABLES or kind in _ANNOTATION_KINDS or issubclass(kind, (type, ModuleType))
