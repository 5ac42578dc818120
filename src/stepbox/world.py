"""The world of a program: a short list of builtins, and fresh, curated stand-ins for modules.

A stand-in holds public names only, nothing of `sys` or `os` hangs on it, and what a program does to it ends
with the program. Nothing in it reads attributes by a name that a program chooses, runs text that a program
makes, or hands out classes of the library that do.
"""

from __future__ import annotations
import __future__

import abc
import bisect
import builtins
import cmath
import collections
import contextlib
import copy
import dataclasses
import decimal
import fractions
import functools
import heapq
import inspect
import itertools
import math
import operator
import random
import re
import statistics
import string
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NoReturn

from stepbox.screen import may_be_attribute


def _discard(*values: object, **options: object) -> None:
    """Stands for `print`: nobody listens."""


class _Kind:
    """Stands for a class that programs may compare but not use: those of functions, modules, frames."""

    __slots__ = ("__kind__",)

    def __init__(self, kind: type) -> None:
        self.__kind__ = kind

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self.__kind__)

    def __repr__(self) -> str:
        return repr(self.__kind__)


_closed: dict[type, _Kind] = {}


def _class_of(value: object) -> Any:
    """Stands for `type` of one argument: that of three, like any metaclass, makes classes unscreened."""
    kind = type(value)
    if issubclass(kind, type):
        return _class_of
    if kind in _OPEN_CLASSES or kind.__dict__.get("__module__") == "__main__":
        return kind
    return _closed.setdefault(kind, _Kind(kind))


_class_of.__qualname__ = "type"  # as error messages call it


def _end(code: object = None) -> NoReturn:
    """Stands for `exit`."""
    raise SystemExit(code)


def _no_array(*arguments: object) -> NoReturn:
    """Stands for `array`, whose C code writes outside its memory if an item's `__index__` shortens it."""
    raise NotImplementedError("arrays are not available; use a list")


class _Annotation:
    """Stands for what only annotations are made of. Python's own could be led to any name of `typing`."""

    __slots__ = ()

    def __getitem__(self, item: object) -> _Annotation:
        return self

    def __or__(self, other: object) -> _Annotation:
        return self

    __ror__ = __or__


class _Generic:
    """Stands for `typing.Generic`."""

    def __class_getitem__(cls, item: object) -> type:
        return cls


def _type_variable(name: str, *constraints: object, **options: object) -> _Annotation:
    return _Annotation()


def _new_type(name: str, kind: object) -> Callable[[Any], Any]:
    return lambda value: value


_CLASS_VARIABLE = _Annotation()


def _dataclass(kind: Any = None, /, **options: Any) -> Any:
    """`dataclass`, told by Python's own sign which annotations mean variables of the class."""
    if kind is None:
        return lambda kind: _dataclass(kind, **options)
    with contextlib.suppress(NameError):  # an annotation that names what comes later
        notes = inspect.get_annotations(kind)
        if any(note is _CLASS_VARIABLE for note in notes.values()):
            kind.__annotations__ = {
                name: typing.ClassVar if note is _CLASS_VARIABLE else note for name, note in notes.items()
            }
    return dataclasses.dataclass(kind, **options)


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
_HASHES: dict[str, Any] = {  # `hashlib` would load all of OpenSSL into workers, which are to be small
    name: getattr(import_module(module), name)
    for name, module in (("md5", "_md5"), ("sha1", "_sha1"), ("sha256", "_sha256"), ("sha256", "_sha2"))
    if find_spec(module)
}
# Not `Type`, whose subclasses would be metaclasses, nor what evaluates annotations or reads them.
_TYPING: dict[str, Any] = {
    **dict.fromkeys(("Any", "AnyStr", "Final", "Literal", "NoReturn", "Optional", "Union"), _Annotation()),
    **_chosen(
        collections.abc,
        "Callable Collection Container Generator Hashable Iterable Iterator Mapping MutableMapping "
        "MutableSequence MutableSet Reversible Sequence Sized",
    ),
    **_chosen(collections, "Counter OrderedDict"),
    **_chosen(typing, "NamedTuple cast"),
    "ClassVar": _CLASS_VARIABLE,
    "DefaultDict": collections.defaultdict,
    "Deque": collections.deque,
    "Dict": dict,
    "FrozenSet": frozenset,
    "Generic": _Generic,
    "List": list,
    "NewType": _new_type,
    "Set": set,
    "Text": str,
    "Tuple": tuple,
    "TypeVar": _type_variable,
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
    "array": {"array": _no_array},
    "bisect": _chosen(bisect, "bisect bisect_left bisect_right insort insort_left insort_right"),
    "cmath": _public(cmath),
    "copy": _chosen(copy, "copy deepcopy"),
    # Not `make_dataclass`, which makes classes of names and methods that were not screened.
    "dataclasses": {
        **_chosen(dataclasses, "FrozenInstanceError asdict astuple field fields is_dataclass replace"),
        "dataclass": _dataclass,
    },
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
        **_chosen(
            re, "Match Pattern compile error escape findall finditer fullmatch match search split sub subn"
        ),
        # As numbers: their class could make enumerations of any module's contents.
        **{name: int(getattr(re, name)) for name in _FLAGS.split()},
    },
    "string": {name: text for name, text in vars(string).items() if type(text) is str and name[0] != "_"}
    | {"capwords": string.capwords},
    "sys": {**_chosen(sys, "float_info getsizeof maxsize maxunicode"), "setrecursionlimit": _discard},
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
    "exit": _end,
    "print": _discard,
    "quit": _end,
    "type": _class_of,
}
BUILTIN_EXCEPTIONS = frozenset(_EXCEPTIONS.values())
_OPEN_CLASSES = frozenset(
    kind
    for contents in (_SHARED_BUILTINS, *_MODULES.values())
    for kind in contents.values()
    if isinstance(kind, type)
) | {type(None), type(...), type(NotImplemented), types.MethodType}
NO_VALUES = frozenset(  # kinds of objects that are functions or annotations
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
        # The next three have no name under which they could be imported.
        type(functools.lru_cache(ord)),
        type(__future__.division),
        type(collections.abc.Callable[[], int]),
        _Annotation,
        _Kind,
    }
)


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
    _close_ways()


def _close_ways() -> None:
    """Take away what would read attributes, or run text, under names that a program chooses."""
    for kind, name, stand_in in (
        (abc.ABCMeta, "register", _not_registered),
        (dataclasses.Field, "name", property(_NAME.__get__, _set_name)),
        (dataclasses.Field, "__init_subclass__", _not_subclassed),
    ):
        setattr(kind, name, stand_in)


def _not_registered(kind: type, other: object) -> NoReturn:
    """Stands for `register`: a pattern `case C(x)` reads attributes that C names, of what counts as a C."""
    raise TypeError("no class can be registered here")


_NAME: Any = vars(dataclasses.Field)["name"]


def _set_name(field: object, name: object) -> None:
    """Set the name of a dataclass's field: source code is made of it, and attributes are read by it."""
    if name is not None and not (type(name) is str and name.isidentifier() and may_be_attribute(name)):
        raise TypeError(f"field name {name!r:.80} is not allowed")
    _NAME.__set__(field, name)


def _not_subclassed(*arguments: object, **options: object) -> NoReturn:
    raise TypeError("Field cannot be subclassed here")
