"""Which variables a solution still needs after each of its steps: live variables, by backward data flow.

A variable is live after step j if a later step may read it before it is surely written again. What a step
reads and writes is seen in its syntax tree; where that cannot be known (`exec`, a function that reads
variables from outside when it is called), nothing is said about the solution at all.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from partway.caching import BoundedCache
from partway.parsing import Statement, parse

Names = frozenset[str]
NONE: Names = frozenset()
BUILTINS = frozenset(dir(builtins))
NAME = re.compile(r"(?<![\w.])[A-Za-z]\w*")  # in plain arithmetic; the e of 1e-05 is no name
MAX_CACHED_BYTES = 32 << 20
BYTES_PER_CHARACTER = 100  # of the sets of names that a step may hold
REFLECTION = frozenset({"exec", "eval", "compile", "globals", "locals", "vars", "dir", "__import__"})


class Unknown(Exception):
    """What a step reads or writes cannot be told from its text."""


@dataclass(frozen=True, slots=True)
class Effects:
    """What a step may read from before it, what it surely writes, and every name it may bind."""

    reads: Names = NONE
    writes: Names = NONE
    binds: Names = NONE

    def then(self, later: Effects) -> Effects:
        """The effects of this followed by `later`."""
        return Effects(
            self.reads | (later.reads - self.writes), self.writes | later.writes, self.binds | later.binds
        )

    def either(self, other: Effects) -> Effects:
        """The effects of one of the two, nobody knows which."""
        return Effects(self.reads | other.reads, self.writes & other.writes, self.binds | other.binds)

    def maybe(self) -> Effects:
        """The effects if this may run any number of times, also none."""
        return Effects(self.reads, NONE, self.binds)


_known = BoundedCache[str, tuple["Effects | None"]](
    MAX_CACHED_BYTES, lambda step, _: 1_000 + BYTES_PER_CHARACTER * len(step)
)


def effects_of(step: str) -> Effects | None:
    """What one step does to variables; None if it cannot be known.

    >>> effects = effects_of("if n0 > 2:\\n    t0 = n1\\nelse:\\n    t0 = t1 = 0")
    >>> sorted(effects.reads), sorted(effects.writes), sorted(effects.binds)
    (['n0', 'n1'], ['t0'], ['t0', 't1'])
    """
    found = _known.get(step)
    if found is None:
        found = (_effects(step),)
        _known.put(step, found)
    return found[0]


def _effects(step: str) -> Effects | None:
    parsed = parse(step, "")
    if parsed.error is not None:  # nested too deep to be read again
        return None
    try:
        return _sequence(map(_statement, parsed.statements))
    except (Unknown, RecursionError):
        return None


def live_after(steps: Sequence[str]) -> tuple[Names, ...] | None:
    """For j = 0, 1, ... the variables that the steps behind the first j still read; None if unknown.

    >>> [sorted(names) for names in live_after(["n0 = 2", "n1 = 5", "t0 = n0 * n1", "answer = t0 + n1"])]
    [[], ['n0'], ['n0', 'n1'], ['n1', 't0'], []]
    """
    live = NONE
    found = [live]
    for step in reversed(steps):
        effects = effects_of(step)
        if effects is None:
            return None
        live = effects.reads | (live - effects.writes)
        found.append(live)
    return tuple(found[::-1])


def _sequence(parts: Iterable[Effects]) -> Effects:
    whole = Effects()
    for part in parts:
        whole = whole.then(part)
    return whole


def _statement(statement: Statement) -> Effects:
    if statement.node is not None:
        return _node(statement.node)
    target, *reads = NAME.findall(statement.text)  # plain arithmetic has no other words in it than names
    return Effects(frozenset(reads), frozenset((target,)), frozenset((target,)))


def _block(body: Sequence[ast.stmt]) -> Effects:
    return _sequence(map(_node, body))


def _node(node: ast.stmt) -> Effects:
    match node:
        case ast.Assign(targets=targets, value=value):
            return _read(value).then(_written(targets))
        case ast.AugAssign(target=target, value=value):
            return _read(value, _loaded(target)).then(_written([target]))
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return _read(value).then(_written([target]))
        case ast.Expr(value=value):
            return _read(value)
        case ast.Assert(test=test, msg=message):
            return _read(test, message)
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return _imported(names)
        case ast.Pass() | ast.AnnAssign() | ast.Break() | ast.Continue():
            return Effects()
        case ast.Delete(targets=targets):  # what is deleted must have been there
            return _read(*map(_loaded, targets))
        case ast.If(test=test, body=body, orelse=otherwise):
            return _read(test).then(_block(body).either(_block(otherwise)))
        case ast.For(target=target, iter=iterated, body=body, orelse=otherwise):
            turn = _written([target]).then(_block(body))
            return _read(iterated).then(turn.maybe()).then(_block(otherwise).maybe())
        case ast.While(test=test, body=body, orelse=otherwise):
            return _read(test).then(_block(body).maybe()).then(_block(otherwise).maybe())
        case ast.With(items=items, body=body):
            # What is entered may swallow an error, so the body may have broken off anywhere.
            entered = [
                _read(item.context_expr).then(_written([item.optional_vars] if item.optional_vars else []))
                for item in items
            ]
            return _sequence([*entered, _block(body).maybe()])
        case ast.Try(body=body, handlers=handlers, orelse=otherwise, finalbody=final):
            # Any part may break off or be skipped: nothing is surely written.
            parts = [body, *(handler.body for handler in handlers), otherwise, final]
            return _sequence(_block(part).maybe() for part in parts)
        case ast.FunctionDef(name=name, args=arguments):
            return _function(node, name, arguments)
    raise Unknown


def _function(node: ast.FunctionDef, name: str, arguments: ast.arguments) -> Effects:
    """A function that reads nothing from outside but builtins and itself is a constant like any other."""
    if node.decorator_list or any(isinstance(n, (ast.Global, ast.Nonlocal)) for n in ast.walk(node)):
        raise Unknown
    defaults = _read(*arguments.defaults, *arguments.kw_defaults)
    if _free(node) - BUILTINS - {name}:
        raise Unknown
    return defaults.then(Effects(NONE, frozenset((name,)), frozenset((name,))))


def _free(node: ast.FunctionDef | ast.Lambda) -> Names:
    """Names in a function that are not its own."""
    inside = list(ast.walk(node))
    own = {n.arg for n in inside if isinstance(n, ast.arg)}
    own |= {n.id for n in inside if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    own |= {n.name for n in inside if isinstance(n, ast.FunctionDef)}
    own |= {alias.asname or alias.name for n in inside if isinstance(n, ast.Import) for alias in n.names}
    _refuse_reflection(inside)
    return frozenset(n.id for n in inside if isinstance(n, ast.Name)) - own


def _read(*expressions: ast.expr | None) -> Effects:
    """What expressions read, and bind by `:=`; names inside comprehensions are their own."""
    nodes = [node for expression in expressions if expression is not None for node in ast.walk(expression)]
    _refuse_reflection(nodes)
    for node in nodes:
        if isinstance(node, ast.Lambda) and _free(node) - BUILTINS:
            raise Unknown  # read when it is called, whenever that is
    own = {name.id for node in nodes if isinstance(node, ast.comprehension) for name in _stored(node.target)}
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    walrus = frozenset(node.target.id for node in nodes if isinstance(node, ast.NamedExpr))
    loads = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return Effects(frozenset(loads - own), NONE, walrus)


def _written(targets: Sequence[ast.expr]) -> Effects:
    """Names that assignment targets bind; `xs[i] = 1` reads xs, which it changes, and i."""
    names = frozenset(name.id for target in targets for name in _stored(target))
    return Effects(_read(*targets).reads, names, names)


def _stored(target: ast.expr) -> list[ast.Name]:
    return [n for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _loaded(target: ast.expr) -> ast.expr:
    """A target as the expression that reads it."""
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target


def _imported(names: Sequence[ast.alias]) -> Effects:
    if any(alias.name == "*" for alias in names):
        raise Unknown
    bound = frozenset(alias.asname or alias.name.split(".")[0] for alias in names)
    return Effects(NONE, bound, bound)


def _refuse_reflection(nodes: Sequence[ast.AST]) -> None:
    if any(isinstance(node, ast.Name) and node.id in REFLECTION for node in nodes):
        raise Unknown
