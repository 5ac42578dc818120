"""Run straight-line arithmetic on exact ints, floats and bools in this process.

Nothing of a program is compiled or evaluated by Python here: a statement becomes a small function of the
variables, once, and that is called for every program with this line. What the functions do not cover
(`NotCovered`) goes to another room.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from typing import Any

from straightline.arithmetic import (
    BUILTINS,
    COMPARE,
    MATH_CONSTANTS,
    MATH_FUNCTIONS,
    NotCovered,
    Run,
    Variables,
    binary,
    bounded,
    constant,
    unary,
    variable,
)
from straightline.parsing import Statement
from straightline.traces import Changed, Execution, Failure

MATH_IMPORTED = "import math"  # kept among the variables, for no variable can have this name
_PYTHON_KNOWS = frozenset({"math", *dir(builtins)})


def interpret(statements: Sequence[Statement]) -> Execution:
    """Run `statements`; NotCovered if any reaches outside the subset."""
    variables: Variables = {}
    changes: list[Changed] = []
    failure = None
    try:
        for statement in statements:
            result = (statement.run or lowered(statement))(variables)
            sets = {statement.target: result} if statement.target else result
            changed = {name: (bounded(value),) for name, value in sets.items()}
            variables.update(sets)
            changes.append(changed)
    except KeyError as error:
        failure = Failure("error", _missing(error.args[0]), len(changes))
    except MemoryError as error:
        failure = Failure("memory", str(error), len(changes))
    except RecursionError:
        raise NotCovered from None  # another room has a stack of its own
    except (ArithmeticError, TypeError, ValueError) as error:
        failure = Failure("error", f"{type(error).__name__}: {error}", len(changes))
    return Execution(tuple(changes), failure)


def _missing(name: str) -> str:
    """What Python says of a variable that is not there; it may be a builtin, which others know better."""
    if name in _PYTHON_KNOWS:
        raise NotCovered from None
    return f"NameError: name '{name}' is not defined"


def lowered(statement: Statement) -> Run:
    """The function that runs a statement, which remembers it, also that it is not covered."""
    try:
        statement.run = _lower(statement.node)
    except (NotCovered, RecursionError):
        statement.run = _hand_on
    return statement.run


def _hand_on(variables: Variables) -> Any:
    raise NotCovered


def _lower(node: ast.stmt | None) -> Run:
    match node:
        case ast.Assign(targets=[ast.Name() as target], value=value) if _target(target):
            return _value(value)
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
            return binary(type(op), variable(name), _value(value))
        case ast.Assign(targets=targets, value=value):
            return _assignment(targets, value)
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=arguments, keywords=[])):
            return _dropped([_value(argument) for argument in arguments], printer="print")
        case ast.Expr(value=value):
            return _dropped([_value(value)])
        case ast.Import(names=[ast.alias(name="math", asname=None)]):
            return _import_math
        case ast.Pass():
            return lambda variables: {}
    raise NotCovered


def _target(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) if not name.startswith("__"):  # others are for the screen to refuse
            return name
    raise NotCovered


def _value(node: ast.expr) -> Run:
    """The value of an expression of the subset."""
    match node:
        case ast.Constant(value=bool() | int() | float() as number):
            return constant(number)
        case ast.Name(id=name):
            return variable(name)
        case ast.BinOp(left=left, op=op, right=right):
            return binary(type(op), _value(left), _value(right))
        case ast.UnaryOp(op=op, operand=operand):
            return unary(type(op), _value(operand))
        case ast.BoolOp(op=op, values=values):
            return _boolean(isinstance(op, ast.And), [_value(value) for value in values])
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return _comparison([_value(operand) for operand in (left, *comparators)], ops)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            condition, yes, no = _value(test), _value(body), _value(orelse)
            return lambda variables: yes(variables) if condition(variables) else no(variables)
        case ast.Call(func=function, args=arguments, keywords=[]):
            return _call(function, [_argument(argument) for argument in arguments])
        case ast.Attribute(value=ast.Name(id="math"), attr=attribute) if attribute in MATH_CONSTANTS:
            known = MATH_CONSTANTS[attribute]
            return lambda variables: _require_math(variables) and known
    raise NotCovered


def _boolean(is_and: bool, values: list[Run]) -> Run:
    def evaluate(variables: Variables) -> Any:
        result = None
        for value in values:
            result = value(variables)
            # Python's `and` and `or` give the operand that decided, not True or False.
            if bool(result) is not is_and:
                break
        return result

    return evaluate


def _comparison(operands: list[Run], operators: list[ast.cmpop]) -> Run:
    if not all(type(operator) in COMPARE for operator in operators):
        raise NotCovered
    compares = [COMPARE[type(operator)] for operator in operators]

    def evaluate(variables: Variables) -> Any:
        left, result = operands[0](variables), True
        for compare, operand in zip(compares, operands[1:], strict=True):
            right = operand(variables)
            result = compare(left, right)
            if not result:
                break
            left = right
        return result

    return evaluate


def _argument(node: ast.expr) -> Run:
    """An argument of a call: a value, or a bracketed list of values as in `max([a, b])`."""
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            values = [_value(element) for element in elements]
            return lambda variables: [value(variables) for value in values]
    return _value(node)


def _call(function: ast.expr, arguments: list[Run]) -> Run:
    match function:
        case ast.Name(id=name) if name in BUILTINS:
            known = BUILTINS[name]

            def call(variables: Variables) -> Any:
                # `max = 3` is legal; then `max(1, 2)` is an error that Python itself should word.
                if name in variables:
                    raise NotCovered
                return _number(known(*[argument(variables) for argument in arguments]))

            return call
        case ast.Attribute(value=ast.Name(id="math"), attr=attribute) if attribute in MATH_FUNCTIONS:
            known_math = MATH_FUNCTIONS[attribute]

            def call_math(variables: Variables) -> Any:
                _require_math(variables)
                return _number(known_math(*[argument(variables) for argument in arguments]))

            return call_math
    raise NotCovered


def _number(value: Any) -> Any:
    """`value` if it is one the interpreter deals in; `max([1], [2])` is a list, for instance."""
    if type(value) not in (int, float, bool):
        raise NotCovered
    return value


def _require_math(variables: Variables) -> bool:
    if MATH_IMPORTED not in variables or "math" in variables:
        raise NotCovered
    return True


def _import_math(variables: Variables) -> Variables:
    if "math" in variables:
        raise NotCovered
    variables[MATH_IMPORTED] = True
    return {}


def _assignment(targets: list[ast.expr], value: ast.expr) -> Run:
    """`a = b = 1` and `a, b = 1, 2`."""
    match targets, value:
        case (
            [ast.Tuple(elts=several) | ast.List(elts=several)],
            ast.Tuple(elts=elements) | ast.List(elts=elements),
        ) if len(several) == len(elements):
            names, values = list(map(_target, several)), list(map(_value, elements))
            return lambda variables: dict(zip(names, [one(variables) for one in values], strict=True))
    names, only = list(map(_target, targets)), _value(value)
    return lambda variables: dict.fromkeys(names, only(variables))


def _dropped(values: list[Run], printer: str | None = None) -> Run:
    """A statement that computes and sets nothing."""

    def run(variables: Variables) -> Variables:
        # A program that gave `print` a value of its own means that value; others know what happens then.
        if printer in variables:
            raise NotCovered
        for value in values:
            value(variables)
        return {}

    return run
