"""Tests decide about programs, and no program decides about its tests."""

import sys

import pytest

from partway import Problem, SolutionBuffer, Verdict, trace
from partway.language.python import run_isolated
from partway.written.tested import TestedLanguage
from undertest import objection, passes

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls differ elsewhere")

RIGHT = "def double(x):\n    return x + x"
# Every one holds for 2 * x and for no function that is wrong about 2 and 7.
FORMS = {
    "equal": ["assert double(2) == 4", "assert double(7) == 14"],
    "turned round": ["assert 4 == double(2)", "assert 14 == double(7)"],
    "both": ["assert double(2) == 4 and double(7) == 14"],
    "not unequal": ["assert not double(2) != 4", "assert not double(7) != 14"],
    "a truth": ["assert (double(2) == 4) is True", "assert (double(7) == 14) is True"],
    "between": ["assert 3 < double(2) < 5", "assert 13 < double(7) < 15"],
    "close": ["import math", "assert math.isclose(double(2), 4)", "assert math.isclose(double(7), 14)"],
    "close, imported by the program": ["assert math.isclose(double(2), 4) and math.isclose(double(7), 14)"],
    "near": ["assert abs(double(2) - 4) < 1e-6", "assert abs(double(7) - 14) < 1e-6"],
    "rounded": ["assert round(double(2), 3) == 4", "assert round(double(7), 3) == 14"],
    "member": ["assert double(2) in (4,)", "assert double(7) in [14]"],
    "set": ["assert set([double(2), double(7)]) == {4, 14}"],
    "sorted": ["assert sorted([double(7), double(2)]) == [4, 14]"],
    "list": ["assert [double(2), double(7)] == [4, 14]"],
    "text": ["assert str(double(2)) == '4' and f'{double(7)}' == '14'"],
    "kind": ["assert isinstance(double(2), int) and double(2) == 4 and double(7) == 14"],
    "all": ["assert all(double(n) == m for n, m in [(2, 4), (7, 14)])"],
    "any": ["assert not any(double(n) != 2 * n for n in (2, 7))"],
    "map": ["assert list(map(double, [2, 7])) == [4, 14]"],
    "all of map": ["assert all(map(lambda n: double(n) == 2 * n, [2, 7]))"],
    "loop": ["for n in range(2, 9):\n    assert double(n) == n + n"],
    "function": [
        "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(7) == 14",
        "check(double)",
    ],
    "caught": [
        "try:\n    right = double(2) == 4 and double(7) == 14\nexcept Exception:\n    right = False",
        "assert right",
    ],
    "one hangs on the other": ["n = double(2)", "assert n == 4 and double(n + 3) == 14"],
    "dictionary": ["assert {2: double(2), 7: double(7)} == {2: 4, 7: 14}"],
    "tables": [["double(2)", 4], {"call": "double(7)", "expected": 14}],
}
LIES = "\n".join(
    f"    def __{name}__(self, *other):\n        return {value}"
    for name, value in {
        **dict.fromkeys(("eq", "lt", "gt", "le", "ge", "contains", "bool"), True),
        **dict.fromkeys(("sub", "rsub", "add", "abs", "round", "getitem", "call", "iter", "next"), "self"),
        "ne": False,
        **dict.fromkeys(("len", "hash", "int", "index"), 4),
        **dict.fromkeys(("repr", "str"), "'4'"),
    }.items()
)
RETURNS = "\ndef double(x):\n    return "
CHEATS = {
    "equal to everything": f"class Any:\n{LIES}{RETURNS}Any()",
    "a class of integers": f"class N(int):\n{LIES}{RETURNS}N(0)",
    "a class of floats": f"class N(float):\n{LIES}{RETURNS}N(0)",
    "a class of texts": f"class N(str):\n{LIES}{RETURNS}N('4')",
    "a class of tuples": f"class N(tuple):\n    _fields = ()\n{LIES}{RETURNS}N()",
    "a class of lists": f"class N(list):\n{LIES}{RETURNS}N()",
    "a class of dictionaries": f"class N(dict):\n{LIES}{RETURNS}N()",
    "a class of sets": f"class N(set):\n{LIES}{RETURNS}N()",
    "a class of fractions": f"from fractions import Fraction\nclass N(Fraction):\n{LIES}{RETURNS}N(0)",
    "a class of exceptions": f"class N(Exception):\n{LIES}{RETURNS}N()",
    "a class called int": f"class int:\n{LIES}{RETURNS}int()",
    "a class called range": f"class range:\n{LIES}{RETURNS}range()",
    "a class called generator": f"class generator:\n{LIES}{RETURNS}generator()",
    "the class itself": f"class Any:\n{LIES}{RETURNS}Any",
    "equal by a decorator": "class Any:\n    @(lambda f: lambda *a: True)\n    def __eq__(self, other):\n"
    f"        pass{RETURNS}Any()",
    "ordered": f"import functools\n@functools.total_ordering\nclass Any:\n{LIES}{RETURNS}Any()",
    "data": f"import dataclasses\n@dataclasses.dataclass(eq=False)\nclass Any:\n{LIES}{RETURNS}Any()",
    "a list of such": f"class Any:\n{LIES}{RETURNS}[Any()]",
    "an object that is called": f"class Any:\n{LIES}\ndouble = Any()",
    "another abs": f"abs = lambda x: 0{RETURNS}0",
    "another set and sorted": f"class Any:\n{LIES}\nset = sorted = lambda *a: Any(){RETURNS}0",
    "other all and any": f"all = lambda *a: True\nany = lambda *a: False{RETURNS}0",
    "another isinstance": f"isinstance = lambda *a: True{RETURNS}0",
    "another str": f"str = lambda x: '4'{RETURNS}0",
    "another range": f"range = lambda *a: []{RETURNS}0",
    "another round, list and map": f"class Any:\n{LIES}\nround = list = map = lambda *a: Any(){RETURNS}0",
    "another math": f"class math:\n    isclose = staticmethod(lambda *a, **k: True){RETURNS}0",
    "another isclose": f"import math\nmath.isclose = lambda *a, **k: True{RETURNS}0",
    "another check": f"def check(candidate):\n    pass{RETURNS}0",
    "another AssertionError": f"class AssertionError(Exception):\n    pass{RETURNS}0",
    "another Exception": f"Exception = AssertionError = ValueError{RETURNS}0",
    "other words of the judge": "calls_asked_for = []\nvalue_of_call = 4\n"
    f"class Function:\n{LIES}\nclass Object:\n{LIES}\nclass Unknown:\n{LIES}{RETURNS}Unknown()",
    "a value before the call": "value_of_call = 4\ndef double(x):\n    global value_of_call\n"
    "    value_of_call = 4\n    raise ValueError",
    "a value after the call": "def later():\n    global value_of_call\n    try:\n        yield\n"
    f"    finally:\n        value_of_call = 5\nvalue_of_call = later()\nnext(value_of_call){RETURNS}0",
    "the test itself": "def double(x):\n    check(double)\n    return 4",
    "a count": "n = 0\ndef double(x):\n    global n\n    n += 1\n    return n",
    "one that hits": "def double(x):\n    return 4",
    "its text": f"{RETURNS}'4'",
    "NotImplemented": f"{RETURNS}NotImplemented",
    "not a number": f"{RETURNS}float('nan')",
    "infinity": f"{RETURNS}float('inf')",
    "nothing": f"{RETURNS}None",
    "a truth": f"{RETURNS}True",
    "an ellipsis": f"{RETURNS}...",
    "a function": f"{RETURNS}(lambda *a: 4)",
    "a generator": "def double(x):\n    yield 4\n    yield 14",
    "a generator of such": f"class Any:\n{LIES}\ndef double(x):\n    yield Any()",
    "a long generator": "def double(x):\n    yield from [4] * 10 ** 5",
    "an endless generator": "def double(x):\n    while True:\n        yield 4",
    "an iterator": f"{RETURNS}iter([4, 14])",
    "the end of iterations": "def double(x):\n    raise StopIteration",
    "an end": "def double(x):\n    raise SystemExit(0)",
    "an interruption": "def double(x):\n    raise KeyboardInterrupt",
    "a failed assertion": "def double(x):\n    raise AssertionError",
    "no function": "x = 4",
    "an end before": f"raise SystemExit(0){RETURNS}0",
    "a loop": "def double(x):\n    while True:\n        pass",
    "a large number": f"{RETURNS}1 << 10 ** 6",
    "a long list": f"{RETURNS}[4] * 10 ** 6",
    "the arguments of the test": "def double(x):\n    return {2: 5, 7: 15}.get(x, 4)",
    "one right answer, later others": "seen = []\ndef double(x):\n    seen.append(x)\n"
    "    return 4 if len(seen) == 1 else seen",
    "an end of the process": f"import sys\nsys.modules['os']._exit(0){RETURNS}0",
    "a printed verdict": f"print('all_tests_passed = True'){RETURNS}print('null')",
    "a text without end": "class N(list):\n    def __repr__(self):\n        return repr(self)"
    f"{RETURNS}N([4])",
    "a name for nothing": f"nan = float('nan'){RETURNS}[nan] * x",
    "a list in itself": "def double(x):\n    y = [4]\n    y.append(y)\n    return y",
}


def judged(text: str, tests: list) -> bool:
    problem = Problem("double", "Double it.", tests)
    language = TestedLanguage()
    return language.is_correct(problem, trace(text, language, problem))


@pytest.mark.parametrize("form", FORMS)
def test_right_functions_pass(form):
    assert judged(RIGHT, FORMS[form])
    assert judged(f"import math\n{RIGHT}", FORMS[form])
    assert not judged("def double(x):\n    return 4 if x == 2 else x", FORMS[form])


@pytest.mark.parametrize("cheat", CHEATS)
def test_no_program_marks_itself_right(cheat):
    is_slow = cheat in ("a loop", "a long list", "an endless generator", "a class called generator")
    assert [
        form
        for form in (["equal", "map"] if is_slow else FORMS)
        if judged(CHEATS[cheat].lstrip(), FORMS[form])
    ] == []


def test_a_cheat_is_not_kept():
    problem = Problem("double", "Double it.", FORMS["equal"], RIGHT)
    buffer = SolutionBuffer.seeded(problem, language=TestedLanguage())
    assert (
        buffer.consider(trace(CHEATS["equal to everything"], TestedLanguage(), problem)) is Verdict.INCORRECT
    )


@pytest.mark.parametrize(
    ("text", "tests"),
    [
        ("def f(a):\n    b = list(a)\n    a.clear()\n    return []", ["a = [1]", "assert f(a) == a"]),
        ("def f(a):\n    a[:] = [9]\n    return [9]", ["a = [1]", "e = [a, 2]", "assert f(a) == e[0]"]),
        ("def f(a):\n    a.clear()\n    return []", ["a = [3, 1]", "assert f(a) == sorted(a)"]),
        ("def g(x):\n    yield x\ndef f(x):\n    return 0", ["assert f(g(3)) == 3"]),
        ("def g(x):\n    return f\ndef f(x):\n    return 0", ["assert f(g(3)) == 3"]),
        ("def g(x):\n    return [f]\ndef f(x):\n    return 0", ["assert f(g(3)) == 3"]),
        ("def f():\n    raise StopIteration", ["assert all(map(lambda n: f() == n, [1, 2]))"]),
        ("def f(a):\n    a.clear()", ["a = [2, 1]", "f(a)", "assert a == [1, 2]"]),
        ("def f(a):\n    a[0].clear()\n    return 1", ["e = [3]", "a = [e]", "f(a)", "assert a == [[3]]"]),
        ("def f(a):\n    a.clear()", ["e = [2, 1]", "a = list(e)", "f(a)", "assert a == sorted(e)"]),
        (f"class P:\n{LIES}\ndef f():\n    return P()", ["assert f() == P()"]),
        (f"class P:\n{LIES}\ndef f():\n    return P()", ["assert f().x == 3"]),
        (f"class P:\n{LIES}\n    def g(self):\n        return P()", ["p = P()", "assert p.g() == 3"]),
        ("class P:\n    n = 3", ["p = P()", "p.n = 4", "assert p.n == 3"]),
        ("def f(n):\n    return lambda: 4", ["assert f(1) is None"]),
        ("def f(n):\n    return [lambda: 4]", ["assert f(1) == [None]"]),
    ],
)
def test_what_a_program_does_to_its_arguments_does_not_change_a_test(text, tests):
    assert not judged(text, tests)


@pytest.mark.parametrize(
    ("text", "tests"),
    [
        (
            "def f(n):\n    yield from range(n)",
            ["assert list(f(3)) == [0, 1, 2]", "assert f(3) != [0, 1, 2]"],
        ),
        ("def f(n):\n    return range(n)", ["assert f(3) == range(3)", "assert len(f(3)) == 3"]),
        ("def f(d):\n    return d.keys()", ["assert sorted(f({'b': 1, 'a': 2})) == ['a', 'b']"]),
        ("def f(n):\n    return {n: {(n, n.real)}}", ["assert f(1) == {1: {(1, 1)}}"]),
        ("def f(n):\n    return n", ["assert f(float('inf')) == float('inf')", "assert f(set()) == set()"]),
        ("def f(a, *, b=2):\n    return a * b", ["assert f(2) == 4", "assert f(2, b=3) == 6"]),
        (
            "from fractions import Fraction\ndef f(n):\n    return Fraction(n, 2)",
            ["from fractions import Fraction", "assert f(1) == Fraction(1, 2)"],
        ),
        (
            "def f(n):\n    if n < 0:\n        raise ValueError('negative')\n    return n",
            [
                "try:\n    f(-1)\nexcept ValueError as error:\n    assert 'negative' in str(error)\n"
                "else:\n    assert False",
                "assert f(1) == 1",
            ],
        ),
        (
            "n = 0\ndef f():\n    global n\n    n += 1\n    return n",
            ["assert f() == 1", "assert f() == 2", "assert [f(), f()] == [3, 4]"],
        ),
        ("def sum(a, b):\n    return a * b", ["assert sum(2, 5) == 10"]),
        (
            "class Pair:\n    def __init__(self, a, b):\n        self.a = a\n        self.b = b\n"
            "def f(pairs):\n    return [p.a + p.b for p in pairs]",
            ["assert f([Pair(1, 2), Pair(3, 4)]) == [3, 7]"],
        ),
        ("def f(n):\n    return n + 1", ["x = 0", "for _ in range(6):\n    x = f(x)", "assert x == 6"]),
        (
            "def f(n):\n    return n + 1",
            ["import random", "for _ in range(50):\n    n = random.randint(0, 99)\n    assert f(n) == n + 1"],
        ),
        ("import math\ndef f(n):\n    return math.pi * n", ["assert f(2) == 2 * math.pi"]),
        ("def f(n):\n    return True", ["assert f(1)", "assert f(1) is True", "assert f(1) is not None"]),
        ("def f(n):\n    return []", ["assert not f(1)"]),
        ("def len(n):\n    return 3", ["assert len([]) == 3"]),
        ("def spelled(n):\n    return n", ["assert spelled(2) == 2", "assert sum([spelled(2)]) == 2"]),
        (
            "class Node:\n    def __init__(self, n):\n        self.n = n\n        self.left = None\n"
            "def depth(node):\n    return 0 if node is None else 1 + depth(node.left)",
            ["root = Node(1)", "root.left = Node(1)", "root.left.left = Node(3)", "assert depth(root) == 3"],
        ),
        (
            "class Account:\n    def __init__(self, n=0):\n        self.n = n\n    def pay(self, n):\n"
            "        self.n += n\n        return self\n    def __len__(self):\n        return self.n",
            ["a = Account()", "a.pay(3)", "assert a.n == 3", "a.pay(a.n).pay(1)", "assert a.n == 7"],
        ),
        (
            "def f(a, n=0):\n    a.sort()\n    a.append(n)",
            ["a = [2, 1]", "f(a)", "assert a == [1, 2, 0]", "f(a, 5)", "assert a == [0, 1, 2, 5]"],
        ),
        ("def f(d):\n    d['a'] = {1}", ["d = {}", "f(d)", "assert d == {'a': {1}}"]),
        ("import re\ndef f(s):\n    return re.search('b+', s)", ["assert f('abb')", "assert not f('a')"]),
        (
            "import re\ndef f(s):\n    return re.search('b+', s)",
            ["assert f('abb').group() == 'bb'", "assert f('abb') is not None and f('a') == None"],
        ),
        ("def f(t, k):\n    return [x for x in t if isinstance(x, k)]", ["assert f((1, 'a'), str) == ['a']"]),
        ("def f(n):\n    return n + 1", ["for n in range(4000):\n    assert f(n) == n + 1"]),
        ("def f(n):\n    return n + 1", ["x = 0", "for _ in range(30):\n    x = f(x)", "assert x == 30"]),
        (
            "n = 0\ndef f(k):\n    global n\n    n += 1\n    if k < 0:\n        raise ValueError\n"
            "    return n",
            [
                "assert f(1) == 1",
                "try:\n    f(-1)\n    assert False\nexcept ValueError:\n    pass",
                "assert f(1) == 3",
            ],
        ),
        ("def f():\n    return lambda: 1", ["assert f() is not None"]),
    ],
)
def test_what_honest_functions_do_passes(text, tests):
    assert judged(text, tests)
    assert objection(tuple(tests), run_isolated) is None


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        (["assert f("], "not Python"),
        (["assert True"], "call no function"),
        (["assert f(lambda x: x) == 1"], "not plain data"),
        (["assert f('a' * 40_000) == 1"], "more than 24000 characters"),
        (["for n in range(60_000):\n    assert f(n) == n"], "too many calls"),
        (["import os", "assert os.getcwd() == '/'", "assert f(1) == 2"], "import of 'os'"),
    ],
)
def test_tests_that_cannot_be_run_here_are_refused_with_the_reason(tests, why):
    found = objection(tuple(tests), run_isolated) or str(TestedLanguage().flaw(Problem("p", "?", tests)))
    assert why in found


def test_a_program_that_passes_by_its_hash_seed_is_not_confirmed():
    language, problem = TestedLanguage(), Problem("p", "?", ["assert f() == 1"])
    for text in ("def f():\n    return 1", "def f():\n    return 1 if hash('a') > 0 or hash('b') > 0 else 1"):
        assert language.confirms(problem, trace(text, language, problem))
    seeded = "import random\ndef f():\n    return 1 if random.random() > 0.8 else 0"
    assert passes(seeded, ("assert f() == 1",), run_isolated)
    assert not language.confirms(problem, trace(seeded, language, problem))
