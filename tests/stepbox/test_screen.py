import ast

import pytest

from stepbox.screen import ABSENT_NAMES, MAX_NESTING, screen


def refusal(code: str) -> str | None:
    found = screen(ast.parse(code)).refusal
    return None if found is None else found.message


@pytest.mark.parametrize(
    "code",
    [
        "x = [i * i for i in range(3) if i % 2]",
        "def f(a, *b, c=1, **d):\n    return a + c",
        "for _ in range(3):\n    _x = 1",
        "if __name__ == '__main__':\n    x = 1",
        "class P:\n    def __init__(self, x):\n        self.x = x\n    def __len__(self):\n        pass",
        "class B(A):\n    def __init__(self):\n        super().__init__(1)",
        "x = '{:>5} {name} {0}'.format(1, name=2)",
        "x = '{:{w}}'.format(1, w=5)",
        "x = f'{1:.2f} {[2]!r}'",
        "match p:\n    case Point(x=0, y=a):\n        z = a\n    case [1, *rest]:\n        z = rest",
        "import math, statistics as s",
        "from math import *",
        "from __future__ import annotations",
        "try:\n    x = 1\nexcept (ValueError, KeyError) as e:\n    x = e.args\nfinally:\n    y = 2",
        "with decimal.localcontext() as c:\n    c.prec = 5",
        "def g():\n    x = yield 1\n    yield from [x]",
        "x = s.register(1)",
    ],
)
def test_ordinary_statements_pass(code):
    assert refusal(code) is None


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("x = ().__class__", "__class__"),
        ("x = a._b_", "_b_"),
        ("x = a._numerator", "_numerator"),
        ("x = f'{().__class__}'", "__class__"),
        ("x = (1)._＿ｃlass_＿", "__class__"),
        ("x.__eq__ = 1", "__eq__"),
        ("x = super().__getattribute__", "__getattribute__"),
        ("x = other.__init__", "__init__"),
        ("x = g.gi_frame", "gi_frame"),
        ("x = e.tb_next", "tb_next"),
        ("x = f.f_back", "f_back"),
        ("x = int.mro()", "mro"),
        ("x = t.format(1)", "format"),
        ("x = '{0.real}'.format(1)", "format"),
        ("x = '{a[0]}'.format(a=[1])", "format"),
        ("x = '{:{0.real}}'.format(1)", "format"),
        ("x = str.format", "format"),
        ("x = 'a'.format_map({})", "format_map"),
        *((f"x = '{{0.real.imag}}{tail}'.format(1)", "format") for tail in ("{", "}", "{0", "{0!", "{[}")),
        ("x = '{:{0.real}{}'.format(1)", "format"),
        ("x = e.obj", "obj"),
        ("match e:\n    case AttributeError(obj=x):\n        pass", "obj"),
        ("x = __builtins__", "__builtins__"),
        ("__name__ = 1", "__name__"),
        ("def __builtins__():\n    pass", "__builtins__"),
        ("class __builtins__:\n    pass", "__builtins__"),
        ("def f(__builtins__):\n    pass", "__builtins__"),
        ("f(__class__=1)", "__class__"),
        ("global __builtins__", "__builtins__"),
        ("import math as __builtins__", "__builtins__"),
        ("from math import pi as __builtins__", "__builtins__"),
        ("try:\n    pass\nexcept E as __builtins__:\n    pass", "__builtins__"),
        ("match a:\n    case {**__builtins__}:\n        pass", "__builtins__"),
        ("match a:\n    case [*__builtins__]:\n        pass", "__builtins__"),
        ("match a:\n    case __builtins__:\n        pass", "__builtins__"),
        ("match a:\n    case object(__class__=c):\n        pass", "__class__"),
        ("match a:\n    case str(format=f):\n        pass", "format"),
        ("[0 for __builtins__ in a]", "__builtins__"),
        ("(__builtins__ := 1)", "__builtins__"),
        ("class A:\n    def __del__(self):\n        pass", "__del__"),
        ("class A:\n    def __getattr__(self, n):\n        pass", "__getattr__"),
        ("class A:\n    __slots__ = ()", "__slots__"),
        ("def __init__(self):\n    pass", "__init__"),
        ("class A(metaclass=M):\n    pass", "keywords"),
        ("import os", "os"),
        ("import math, os", "os"),
        ("import os as math", "os"),
        ("import collections.abc", "collections.abc"),
        ("from . import x", "relative"),
        ("from math import _x", "_x"),
        ("def f():\n    import socket", "socket"),
        ("async def f():\n    pass", "AsyncFunctionDef"),
        ("try:\n    pass\nexcept* E:\n    pass", "TryStar"),
    ],
)
def test_ways_to_the_machinery_are_refused(code, part):
    message = refusal(code)
    assert message is not None
    assert part in message


def test_absent_builtins_are_noted_unless_the_program_binds_them():
    for name in ABSENT_NAMES:
        assert screen(ast.parse(f"x = {name}")).absent == {name}
    assert screen(ast.parse("x = ｅｖａｌ('1')")).absent == {"eval"}
    seen = screen(ast.parse("id = 5"))
    assert (seen.absent, seen.bound) == (set(), {"id"})


@pytest.mark.parametrize(
    "code",
    [
        "super = 1",
        "super: int = 1",
        "(super := 1)",
        "for super in x:\n    pass",
        "[0 for super in x]",
        "def super():\n    pass",
        "class super:\n    pass",
        "class A:\n    super = 1",
        "def f(super):\n    pass",
        "f = lambda super: 1",
        "import math as super",
        "from math import pi as super",
        "with a as super:\n    pass",
        "try:\n    pass\nexcept E as super:\n    pass",
        "match a:\n    case super:\n        pass",
        "match a:\n    case [*super]:\n        pass",
        "match a:\n    case {**super}:\n        pass",
        "del super",
    ],
)
def test_super_cannot_be_made_to_mean_something_else(code):
    assert "super" in str(refusal(code))


def test_nesting_is_an_error_not_an_offence():
    node: ast.expr = ast.Constant(1)
    for _ in range(MAX_NESTING):
        node = ast.UnaryOp(ast.USub(), node)
    found = screen(ast.Module([ast.Expr(node)], [])).refusal
    assert found is not None
    assert found.kind == "error"
