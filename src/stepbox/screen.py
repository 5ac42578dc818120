"""The static screen: what a step may say before it is run at all.

It reads the AST of one statement, knows every kind of node it lets pass, and refuses the rest. It is the
first wall of several (README.md): it keeps programs from reaching Python's own machinery.

Short programs are screened before they are sent: a process made for each would take far longer to do it.
Long ones are screened in their own process, inside the walls, so that screening keeps the caller a few
milliseconds at most.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from stepbox.channel import NOTHING_REFUSED, UNSCREENED, Refusal


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODULES = _words(
    "math statistics fractions decimal itertools functools collections __future__ array bisect cmath copy "
    "dataclasses hashlib heapq operator random re string sys typing"
)
MAX_NESTING = 1_500
MAX_NODES = 200_000
MAX_CHARACTERS = 2_000  # of a program that is screened before it is sent
# An escape in a text, or a number before a word, that Python may warn of when it reads it.
_MAY_WARN = re.compile(
    r"""\\(?![\\'"abfnrtvx0-3\n])|0[xX]|[0-9]\.?[jJ]?(?:and|else|for|i[fns]|not|or)"""
).search
UNPARSABLE = (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError)

# Names that Python has and programs here do not. A program may bind them itself.
ABSENT_NAMES = _words(
    "eval exec compile open input breakpoint help globals locals vars dir getattr setattr delattr "
    "hasattr memoryview id copyright credits license aiter anext"
)
# Attributes that lead from a value to frames, code or all classes, or read attributes named by a text.
# `obj` is the object on which an AttributeError missed an attribute: whatever a text managed to reach.
_MACHINERY = _words(
    "mro with_traceback format_map obj f_back f_builtins f_code f_globals f_lasti f_lineno f_locals f_trace "
    "f_trace_lines f_trace_opcodes f_generator"
)
_MACHINERY_PREFIXES = ("gi_", "cr_", "ag_", "tb_", "co_", "func_")
# Attributes with one underscore are for a program's own classes; these are what classes of the library keep
# there and what would change how they work. A test looks for others.
_LIBRARY = _words(
    "_numerator _denominator _operator_fallbacks _richcmp _evaluate _from_iterable _keep_positive _mu _sigma "
    "_randbelow _randbelow_with_getrandbits _randbelow_without_getrandbits _getitem _inst _nparams _abc_impl "
    "_field_type _determine_new_args _make_substitution _is_protocol _is_runtime_protocol _apply "
    "_abc_caches_clear _abc_registry_clear _dump_registry _paramspec_tvars _MutableMapping__marker"
)

# Methods with which a class of numbers or containers says how it behaves; recording a state calls none.
_METHODS = frozenset(
    f"__{name}__"
    for name in _words(
        "init repr str eq ne lt le gt ge hash bool len getitem setitem delitem contains iter next reversed "
        "call enter exit add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv floordiv "
        "rfloordiv ifloordiv mod rmod imod pow rpow ipow divmod rdivmod matmul rmatmul and rand or ror xor "
        "rxor lshift rlshift rshift rrshift neg pos abs invert int float complex index round trunc floor ceil"
        " post_init"
    )
)
# Those of them that `operator` has under other names, and that no library makes for a class: they may be
# given to a function, as in `map(list.__add__, x, y)`.
_OPERATORS = frozenset(
    f"__{name}__"
    for name in _words(
        "add sub mul truediv floordiv mod pow and or xor lshift rshift neg pos invert contains getitem len"
    )
)
_NODES = (
    "Module FunctionDef ClassDef Return Delete Assign AugAssign AnnAssign For While If With Match Raise Try "
    "Assert Import ImportFrom Global Nonlocal Expr Pass Break Continue BoolOp NamedExpr BinOp UnaryOp Lambda "
    "IfExp Dict Set ListComp SetComp DictComp GeneratorExp Yield YieldFrom Compare Call FormattedValue "
    "JoinedStr Constant Attribute Subscript Starred Name List Tuple Slice comprehension ExceptHandler "
    "arguments arg keyword alias withitem match_case MatchValue MatchSingleton MatchSequence MatchMapping "
    "MatchClass MatchStar MatchAs MatchOr"
)
# The nodes let pass, with the fields in which others hang; operators and contexts say nothing by themselves.
_FIELDS = {
    name: [part for part in getattr(ast, name)._fields if part not in ("ctx", "op", "ops")]
    for name in _NODES.split()
}


@dataclass(frozen=True, slots=True)
class NotAllowed:
    """Why a step may not run."""

    kind: Literal["forbidden", "error"]
    message: str


@dataclass(slots=True)
class Screened:
    """What the screen saw in one step."""

    refusal: NotAllowed | None = None
    bound: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)  # names read that exist only if the program binds them


def refusals(steps: Sequence[Screened]) -> list[NotAllowed | None]:
    """Why each step of a program may not run, None if it may: what one step binds, the others may read."""
    bound = set().union(*(step.bound for step in steps))
    return [step.refusal or _missing(step.absent - bound) for step in steps]


def _missing(names: set[str]) -> NotAllowed | None:
    return NotAllowed("forbidden", f"{min(names)!r} is not available") if names else None


def screened(steps: tuple[str, ...]) -> tuple[tuple[str, ...], Refusal]:
    """The steps that may run, and why the one after them may not.

    >>> screened(("x = [1]", "y = x.__class__", "answer = 1"))
    (('x = [1]',), ('forbidden', "attribute '__class__' is not allowed: it leads to Python's machinery"))
    """
    # What Python would warn of is looked at where nobody hears it: filters of warnings belong to the caller.
    if sum(map(len, steps)) > MAX_CHARACTERS or any(map(_MAY_WARN, steps)):
        return steps, UNSCREENED
    try:
        seen = [_screened(step) for step in steps]
    except UNPARSABLE:
        return steps, UNSCREENED  # the process made for it will say what is wrong
    for number, refusal in enumerate(refusals(seen)):
        if refusal is not None:
            return steps[:number], (refusal.kind, refusal.message)
    return steps, NOTHING_REFUSED


@lru_cache(maxsize=1_024)  # of at most MAX_CHARACTERS each
def _screened(step: str) -> Screened:
    """What the screen sees in the very text that will be compiled, not in the tree that it was made from."""
    return screen(ast.parse(step))


def screen(tree: ast.Module) -> Screened:
    """Look at every node of a step.

    >>> screen(ast.parse("x = eval")).absent
    {'eval'}
    >>> screen(ast.parse("x = [i * i for i in range(3)]")).refusal
    """
    screener = _Screener()
    try:
        screener.walk(tree)
    except _Refused as refused:
        screener.seen.refusal = refused.refusal
    return screener.seen


class _Refused(Exception):
    def __init__(self, message: str, kind: Literal["forbidden", "error"] = "forbidden") -> None:
        super().__init__(message)
        self.refusal = NotAllowed(kind, message)


class _Screener:
    """Walks a tree level by level, so that no nesting can exhaust this process's stack."""

    def __init__(self) -> None:
        self.seen = Screened()
        self.methods: set[int] = set()
        self.called: set[int] = set()

    def walk(self, tree: ast.Module) -> None:
        level: list[ast.AST] = [tree]
        nesting = count = 0
        while level:
            nesting += 1
            count += len(level)
            if nesting > MAX_NESTING or count > MAX_NODES:
                what = f"nests {MAX_NESTING} levels" if nesting > MAX_NESTING else f"has {MAX_NODES} nodes"
                raise _Refused(f"a statement {what} or more", "error")
            level = [child for node in level for child in self.check(node)]

    def check(self, node: ast.AST) -> list[ast.AST]:
        """Refuse a node or return what is below it."""
        kind = type(node).__name__
        if kind not in _FIELDS:
            raise _Refused(f"{kind} is not allowed")
        if kind in _CHECKS:
            _CHECKS[kind](self, node)
        children: list[ast.AST] = []
        for field_name in _FIELDS[kind]:
            value = getattr(node, field_name)
            if isinstance(value, ast.AST):
                children.append(value)
            elif type(value) is list:
                children += [item for item in value if isinstance(item, ast.AST)]
        return children

    def bind(self, name: str | None) -> None:
        _check_variable(name)
        if name == "super":  # `super().__str__` may pass because it can only be Python's own
            raise _Refused("name 'super' is not allowed for a variable")
        if name is not None:
            self.seen.bound.add(name)

    def check_name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.bind(node.id)
        elif node.id in ABSENT_NAMES:
            self.seen.absent.add(node.id)
        elif node.id != "__name__":
            _check_variable(node.id)

    def check_attribute(self, node: ast.Attribute) -> None:
        is_read = isinstance(node.ctx, ast.Load) and id(node) not in self.called
        if not ((is_read and node.attr in _OPERATORS) or (node.attr in _METHODS and _is_super(node.value))):
            _check_attribute_name(node.attr)
        if node.attr == "format" and not _is_plain_format(node.value):
            raise _Refused("'format' is allowed on a literal text without attributes or indices only")

    def check_function(self, node: ast.FunctionDef) -> None:
        if id(node) not in self.methods:  # a method of the list is called as no variable may be
            self.bind(node.name)

    def check_class(self, node: ast.ClassDef) -> None:
        if node.keywords:
            raise _Refused("keywords of a class are not allowed")
        self.bind(node.name)
        methods = (inner for inner in node.body if isinstance(inner, ast.FunctionDef))
        self.methods.update(id(inner) for inner in methods if _is_method(inner.name))

    def check_import(self, node: ast.Import) -> None:
        for alias in node.names:
            _check_module(alias.name)
            # `import __future__` binds the one name with two underscores that may pass.
            self.bind(alias.asname or alias.name if alias.name != "__future__" else alias.asname)

    def check_import_from(self, node: ast.ImportFrom) -> None:
        if node.level:
            raise _Refused("relative imports are not allowed")
        _check_module(node.module or "")
        for alias in node.names:
            if alias.name.startswith("_"):
                raise _Refused(f"name {alias.name[:80]!r} of a module is not allowed")
            self.bind(alias.asname or alias.name)

    def check_comprehension(self, node: ast.comprehension) -> None:
        if node.is_async:
            raise _Refused("asynchronous comprehensions are not allowed")

    def check_class_pattern(self, node: ast.MatchClass) -> None:
        for name in node.kwd_attrs:
            _check_attribute_name(name)
            if name == "format":
                raise _Refused("attribute 'format' is not allowed in a pattern")

    def check_declaration(self, node: ast.Global | ast.Nonlocal) -> None:
        for name in node.names:
            _check_variable(name)


def _check_variable(name: str | None) -> None:
    if name is not None and name.startswith("__"):
        raise _Refused(f"name {name[:80]!r} is not allowed")


def may_be_attribute(name: str) -> bool:
    """Whether a program may read and set an attribute of this name."""
    return not _is_machinery(name) and name not in _LIBRARY


def _is_machinery(name: str) -> bool:
    return name.startswith(_MACHINERY_PREFIXES) or name in _MACHINERY or name[0] == name[-1] == "_"


def _check_attribute_name(name: str) -> None:
    if _is_machinery(name):
        raise _Refused(f"attribute {name[:80]!r} is not allowed: it leads to Python's machinery")
    if not may_be_attribute(name):
        raise _Refused(f"attribute {name!r} is not allowed: classes of the library keep their own there")


def _is_method(name: str) -> bool:
    """Whether a class may have a method of this name, which no variable has: Python's or a private one."""
    return name in _METHODS or (name.startswith("__") and not name.endswith("_"))


def _check_module(name: str) -> None:
    if name not in MODULES:
        allowed = ", ".join(sorted(MODULES))
        raise _Refused(f"import of {name[:80]!r} is not allowed: programs may import {allowed}")


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _is_plain_format(node: ast.expr) -> bool:
    """Whether a template's fields are plain names and numbers: `{0.x}` and `{0[x]}` would read attributes."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and _has_plain_fields(node.value)


def _has_plain_fields(template: str) -> bool:
    try:
        fields = list(string.Formatter().parse(template))
    except ValueError:
        return False  # `format` reads the fields before the place where the template breaks
    return all(
        "." not in (name or "")
        and "[" not in (name or "")
        and ("{" not in (spec or "") or _has_plain_fields(spec))
        for _, name, spec, _ in fields
        if spec is not None
    )


_CHECKS: dict[str, Callable[[_Screener, Any], None]] = {
    "Name": _Screener.check_name,
    "Call": lambda screener, node: screener.called.add(id(node.func)),
    "Attribute": _Screener.check_attribute,
    "FunctionDef": _Screener.check_function,
    "ClassDef": _Screener.check_class,
    "Import": _Screener.check_import,
    "ImportFrom": _Screener.check_import_from,
    "Global": _Screener.check_declaration,
    "Nonlocal": _Screener.check_declaration,
    "comprehension": _Screener.check_comprehension,
    "MatchClass": _Screener.check_class_pattern,
    "MatchMapping": lambda screener, node: screener.bind(node.rest),
    "MatchAs": lambda screener, node: screener.bind(node.name),
    "MatchStar": lambda screener, node: screener.bind(node.name),
    "ExceptHandler": lambda screener, node: screener.bind(node.name),
    "arg": lambda screener, node: screener.bind(node.arg),
    "keyword": lambda screener, node: _check_variable(node.arg),
}
