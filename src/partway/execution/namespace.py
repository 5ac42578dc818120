"""The world a program wakes up in: a short list of builtins and fresh, curated stand-ins for modules.

A stand-in holds a module's public names only. Nothing of `sys` or `os` hangs on it, and what a program
does to it ends with the program.
"""

from __future__ import annotations
import __future__

import builtins
import collections
import decimal
import fractions
import functools
import itertools
import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any


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


def _public(module: ModuleType, leave_out: Sequence[str] = ()) -> dict[str, Any]:
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    return {name: getattr(module, name) for name in names if name not in leave_out}


def _chosen(module: ModuleType, names: str) -> dict[str, Any]:
    return {name: getattr(module, name) for name in names.split()}


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
    stand_ins = {name: ModuleType(name) for name in _MODULES}
    for name, contents in _MODULES.items():
        vars(stand_ins[name]).update(contents)

    def import_module(
        name: str, globals: object = None, locals: object = None, fromlist: Any = (), level: int = 0
    ) -> ModuleType:
        if level or name not in stand_ins:
            raise ImportError(f"import of {name!r} is not allowed")
        for wanted in fromlist or ():  # what is missing, Python itself would look for in `sys.modules`
            if wanted != "*" and wanted not in vars(stand_ins[name]):
                raise ImportError(f"cannot import name {wanted!r} from {name!r}")
        return stand_ins[name]

    return import_module


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
    random.seed(0)  # NormalDist.samples draws from the shared generator
