"""AST statements of the subset, lowered once to functions of the environment.

An environment maps names to ints, floats and bools; under MATH_IMPORTED it remembers `import math`.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any, TypeAlias

from partway.execution.arithmetic import (
    BINARY,
    BUILTINS,
    COMPARE,
    MATH_CONSTANTS,
    MATH_FUNCTIONS,
    UNARY,
    NotCovered,
    bounded,
)

Environment: TypeAlias = dict[str, Any]
Evaluate: TypeAlias = Callable[[Environment], Any]
Run: TypeAlias = Callable[[Environment], dict[str, tuple[Any]]]

MATH_IMPORTED = "import math"  # no variable can have this name


def lower(node: ast.stmt) -> Run:
    """The statement as a function that returns the variables it sets; NotCovered if outside the subset."""
    match node:
        case ast.Assign(targets=targets, value=value):
            return _assignment([_names(target) for target in targets], value)
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
            # Closures: the tree is walked once, the function is called for every program that has this
            # line.
            right = _value(value)
            binary = _known(BINARY, type(op))
            left = _name(name)
            return lambda environment: {name: (bounded(binary(left(environment), right(environment))),)}
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=arguments, keywords=[])):
            return _printing([_value(argument) for argument in arguments])
        case ast.Expr(value=value):
            return _printing([_value(value)], printer=None)
        case ast.Import(names=[ast.alias(name="math", asname=None)]):
            return _import_math
        case ast.Pass():
            return lambda environment: {}
    raise NotCovered


def _names(target: ast.expr) -> str | list[str]:
    match target:
        case ast.Name(id=name) if not name.startswith("__"):  # others are for the screen to refuse
            return name
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            names = [_names(element) for element in elements]
            if all(isinstance(name, str) for name in names):
                return [str(name) for name in names]
    raise NotCovered


def _assignment(targets: list[str | list[str]], value: ast.expr) -> Run:
    if all(isinstance(target, str) for target in targets):
        names = [str(target) for target in targets]
        evaluate = _value(value)

        def assign(environment: Environment) -> dict[str, tuple[Any]]:
            # A tuple of one: None in its place would say that the variable is gone.
            result = (bounded(evaluate(environment)),)
            return dict.fromkeys(names, result)

        return assign
    match targets, value:
        case [[*names]], ast.Tuple(elts=elements) | ast.List(elts=elements) if len(names) == len(elements):
            values = [_value(element) for element in elements]

            def unpack(environment: Environment) -> dict[str, tuple[Any]]:
                results = [(bounded(evaluate(environment)),) for evaluate in values]
                return dict(zip(names, results, strict=True))

            return unpack
    raise NotCovered


def _printing(values: list[Evaluate], printer: str | None = "print") -> Run:
    def run(environment: Environment) -> dict[str, tuple[Any]]:
        # A program that gave `print` a value of its own means that value; others know what happens then.
        if printer in environment:
            raise NotCovered
        for evaluate in values:
            evaluate(environment)
        return {}

    return run


def _import_math(environment: Environment) -> dict[str, tuple[Any]]:
    if "math" in environment:
        raise NotCovered
    # Kept among the variables, so that it goes where they go and no second table is needed.
    environment[MATH_IMPORTED] = True
    return {}


def _value(node: ast.expr) -> Evaluate:
    match node:
        case ast.Constant(value=bool() | int() | float() as constant):
            return lambda environment: constant
        case ast.Name(id=name):
            return _name(name)
        case ast.BinOp(left=left, op=op, right=right):
            binary, first, second = _known(BINARY, type(op)), _value(left), _value(right)
            return lambda environment: bounded(binary(first(environment), second(environment)))
        case ast.UnaryOp(op=op, operand=operand):
            unary, inner = UNARY[type(op)], _value(operand)
            return lambda environment: unary(inner(environment))
        case ast.BoolOp(op=op, values=values):
            return _boolean(isinstance(op, ast.And), [_value(value) for value in values])
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            compares = [_known(COMPARE, type(op)) for op in ops]
            return _comparison([_value(operand) for operand in (left, *comparators)], compares)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            condition, yes, no = _value(test), _value(body), _value(orelse)
            return lambda environment: yes(environment) if condition(environment) else no(environment)
        case ast.Call(func=function, args=arguments, keywords=[]):
            return _call(function, [_argument(argument) for argument in arguments])
        case ast.Attribute(value=ast.Name(id="math"), attr=attribute) if attribute in MATH_CONSTANTS:
            constant = MATH_CONSTANTS[attribute]
            return lambda environment: _require_math(environment) and constant
    raise NotCovered


def _known(table: dict[Any, Callable[..., Any]], key: Any) -> Callable[..., Any]:
    if key not in table:
        raise NotCovered
    return table[key]


def _name(name: str) -> Evaluate:
    return lambda environment: lookup(name, environment)


def lookup(name: str, environment: Environment) -> Any:
    """The variable's value; a name that is none may be a builtin or a module, which others know better."""
    try:
        return environment[name]
    except KeyError:
        if name in BUILTINS or name == "math" or name in NAMES_PYTHON_KNOWS:
            raise NotCovered from None
        raise NameError(f"name '{name}' is not defined") from None


NAMES_PYTHON_KNOWS = frozenset(dir(builtins))


def _boolean(is_and: bool, values: list[Evaluate]) -> Evaluate:
    def evaluate(environment: Environment) -> Any:
        result = None
        for value in values:
            result = value(environment)
            # Python's `and` and `or` give the operand that decided, not True or False.
            if bool(result) is not is_and:
                break
        return result

    return evaluate


def _comparison(operands: list[Evaluate], compares: list[Callable[[Any, Any], Any]]) -> Evaluate:
    def evaluate(environment: Environment) -> Any:
        left, result = operands[0](environment), True
        for compare, operand in zip(compares, operands[1:], strict=True):
            right = operand(environment)
            result = compare(left, right)
            if not result:
                break
            left = right
        return result

    return evaluate


def _argument(node: ast.expr) -> Evaluate:
    """An argument of a call: a value, or a bracketed list of values as in `max([a, b])`."""
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            values = [_value(element) for element in elements]
            return lambda environment: [value(environment) for value in values]
    return _value(node)


def _call(function: ast.expr, arguments: list[Evaluate]) -> Evaluate:
    match function:
        case ast.Name(id=name) if name in BUILTINS:
            known = BUILTINS[name]

            def call(environment: Environment) -> Any:
                # `max = 3` is legal; then `max(1, 2)` is an error that Python itself should word.
                if name in environment:
                    raise NotCovered
                return number(known(*[argument(environment) for argument in arguments]))

            return call
        case ast.Attribute(value=ast.Name(id="math"), attr=attribute) if attribute in MATH_FUNCTIONS:
            known_math = MATH_FUNCTIONS[attribute]

            def call_math(environment: Environment) -> Any:
                _require_math(environment)
                return number(known_math(*[argument(environment) for argument in arguments]))

            return call_math
    raise NotCovered


def number(value: Any) -> Any:
    """`value` if it is one the interpreter deals in; `max([1], [2])` is a list, for instance."""
    if type(value) not in (int, float, bool):
        raise NotCovered
    return value


def _require_math(environment: Environment) -> bool:
    if MATH_IMPORTED not in environment or "math" in environment:
        raise NotCovered
    return True
