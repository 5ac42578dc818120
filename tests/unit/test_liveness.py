"""What a step reads and writes, what stays live behind it, and when nobody can know."""

import pytest

from partway.execution.liveness import effects_of, live_after


@pytest.mark.parametrize(
    ("step", "reads", "writes"),
    [
        ("n0 = 5", "", "n0"),
        ("t0 = n0 * (n1 - n0)", "n0 n1", "t0"),
        ("t0 = 1e-05 * n0", "n0", "t0"),
        ("t0 += n0", "n0 t0", "t0"),
        ("a, b = b, c", "b c", "a b"),
        ("a = b = c", "c", "a b"),
        ("xs[i] = v", "i v xs", ""),
        ("xs.append(v)", "v xs", ""),
        ("t0 = [x * n0 for x in xs]", "n0 xs", "t0"),
        ("t0 = max(n0, 2)", "max n0", "t0"),
        ("import math", "", "math"),
        ("from math import sqrt as root", "", "root"),
        ("if n0 > 2:\n    a = n1\n    b = 1\nelse:\n    a = n2", "n0 n1 n2", "a"),
        ("for i in xs:\n    total = total + i", "total xs", ""),
        ("for i in xs:\n    t = i\n    u = t", "xs", ""),
        ("while n0 > 0:\n    n0 = n0 - n1", "n0 n1", ""),
        ("def double(x):\n    y = x * 2\n    return max(y, 0)", "", "double"),
        ("f = sorted(xs, key=lambda x: -x)", "sorted xs", "f"),
        ("del n0", "n0", ""),
        ("print(n0)", "n0 print", ""),
    ],
)
def test_what_a_step_reads_and_surely_writes(step: str, reads: str, writes: str):
    effects = effects_of(step)
    assert effects is not None
    assert (" ".join(sorted(effects.reads)), " ".join(sorted(effects.writes))) == (reads, writes)


@pytest.mark.parametrize(
    "step",
    [
        "exec('a = 1')",
        "a = eval(b)",
        "from math import *",
        "a = globals()",
        "def f():\n    return n0",
        "f = lambda x: x + n0",
        "def f():\n    global n0\n    n0 = 1",
        "class A:\n    pass",
    ],
)
def test_some_steps_cannot_be_known(step: str):
    assert effects_of(step) is None
    assert live_after(["n0 = 1", step, "answer = n0"]) is None


def test_a_variable_is_live_until_its_last_reading():
    steps = ["a = 1", "b = 2", "a = b + 1", "answer = a"]
    assert [" ".join(sorted(names)) for names in live_after(steps) or ()] == ["", "", "b", "a", ""]
