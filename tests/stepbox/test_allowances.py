"""What programs may import and name beyond arithmetic: honest uses run, and none leads anywhere."""

import collections
import contextlib
import dataclasses
import decimal
import fractions
import functools
import random
import re
import statistics
import sys
import types

import pytest

from stepbox import Execution, run, screen, steps, world

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls differ elsewhere")

HONEST = {
    "from typing import List, Optional\n"
    "def f(x: List[int]) -> Optional[int]:\n    return x[0]\nanswer = f([1])": 1,
    "from typing import *\nV = List[int]\nW = Optional[Dict[str, int]]\nX = Callable[[int], int]\n"
    "Y = TypeVar('Y')\nanswer = 1": 1,
    "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n    y: int = 2\n"
    "p = P(1)._replace(x=3)\nanswer = p.x + p._asdict()['y'] + len(p._fields)": 7,
    "from typing import Generic, TypeVar\nT = TypeVar('T')\nclass S(Generic[T]):\n"
    "    def __init__(self):\n        self._items = []\ns = S()\ns._items.append(2)\nanswer = s._items": [2],
    "class A:\n    def __init__(self):\n        self.__b = 4\n        self._c = 1\n"
    "    def __h(self):\n        return self.__b\n    def get(self):\n        return self.__h() + self._c\n"
    "answer = A().get()": 5,
    "class A:\n    def __repr__(self):\n        return 'A'\nclass B(A):\n    def __repr__(self):\n"
    "        return super().__repr__() + 'B'\nanswer = repr(B())": "AB",
    "from dataclasses import dataclass, field, asdict, replace\n@dataclass(order=True)\nclass P:\n"
    "    x: int\n    y: list = field(default_factory=list)\n    def __post_init__(self):\n"
    "        self.z = 3\np = P(1)\nq = replace(p, x=5)\nanswer = [asdict(q), p < q, p.z, str(p)]": [
        {"x": 5, "y": []},
        True,
        3,
        "P(x=1, y=[])",
    ],
    "import heapq\nh = [3, 1, 2]\nheapq.heapify(h)\nanswer = heapq.heappop(h)": 1,
    "from bisect import bisect_left\nanswer = bisect_left([1, 3, 5], 3)": 1,
    "import re\nm = re.match('([a-z]+)', 'AB1', re.I | re.M)\n"
    "answer = [m.group(1), re.sub('a', lambda m: 'b', 'aa')]": ["AB", "bb"],
    "from operator import add, itemgetter\nanswer = [add(1, 2), max([(1, 2), (0, 3)], key=itemgetter(1))]": [
        3,
        (0, 3),
    ],
    "import string\nanswer = string.ascii_lowercase[:3]": "abc",
    "import copy\nx = [[1]]\ny = copy.deepcopy(x)\ny[0].append(2)\nanswer = x": [[1]],
    "import sys\nsys.setrecursionlimit(10 ** 9)\nanswer = sys.maxsize > 10": True,
    "import cmath\nanswer = cmath.polar(1)": (1.0, 0.0),
    "from array import array\nanswer = 1": 1,
    "import sys\nanswer = sys.getsizeof(()) > 0": True,
    "def f(x):\n    if x < 0:\n        exit()\n    return x\nanswer = f(1)": 1,
    "answer = list(map(list.__add__, [[1]], [[2]])) + [all(map([1, 2].__contains__, [2]))]": [[1, 2], True],
    "class A:\n    pass\nf = lambda: 0\n"
    "answer = [type(A()) is A, type(A())() != 0, type(f) is type(A), isinstance(f, type(lambda: 1)), "
    "type(f) == type(print), str(type(f)), type(type(1)) is type, type(None) is type(None)]": [
        *(True, True, False, True, True, "<class 'function'>", True, True)
    ],
    "from dataclasses import dataclass\nfrom typing import ClassVar, Optional\n@dataclass(frozen=True)\n"
    "class P:\n    n: ClassVar[int] = 3\n    next: Optional['P'] = None\n    x: int | None = 1\n"
    "answer = [str(P(P())), P.n, P() == P()]": ["P(next=P(next=None, x=1), x=1)", 3, True],
    "from typing import Deque, DefaultDict, Tuple, Union, Iterable\nd = DefaultDict(int)\nd[1] += 1\n"
    "class I(Iterable[int]):\n    def __iter__(self):\n        return iter([4])\n"
    "answer = [d, [*I()], isinstance([], Iterable), Deque([1]), Union[int, str] == Tuple[int]]": [
        *({1: 1}, [4], True, [1], False)
    ],
    "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    y: int = 2\n"
    "match P(1):\n    case P(x, y):\n        answer = x + y": 3,
    "import hashlib\nanswer = hashlib.md5(b'a').hexdigest()": "0cc175b9c0f1b6a831c399e269772661",
    "import random\nanswer = random.Random(42).randint(1, 9)": random.Random(42).randint(1, 9),
}
# Each sets `through` if it reaches what it wants.
ATTACKS = [
    "from typing import Type\nclass M(Type):\n    pass\nthrough = M('x', (), {})",
    "import typing\nclass M(typing.Type):\n    pass\nthrough = True",
    "from typing import get_type_hints\nthrough = True",
    "from typing import get_args\nthrough = True",
    "from typing import ForwardRef\nthrough = ForwardRef('1 + 1')._evaluate({}, {}, frozenset())",
    "from typing import List\nthrough = List['open'].__args__",
    "from typing import List\nmatch List['open']:\n    case object(__args__=a):\n        through = a",
    "from typing import sys\nthrough = True",
    "from typing import Generic\nthrough = Generic.mro()",
    "from typing import Any\nclass M(type(Any)):\n    pass\nthrough = M('x', (), {})",
    "from typing import NamedTuple\nthrough = NamedTuple('P', [('__class__', int)])",
    "from typing import NamedTuple\nthrough = NamedTuple('P', [('x: int = open(), y', int)])",
    "import dataclasses\nthrough = dataclasses.make_dataclass('P', [], namespace={'__del__': print})",
    "import dataclasses\nthrough = dataclasses.sys",
    "import dataclasses\nthrough = dataclasses.inspect",
    "from dataclasses import dataclass\n@dataclass\nclass P:\n    __class__: int = 3\nthrough = True",
    "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: 'os.system' = 3\n"
    "os = 1\nthrough = P().os",
    "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nthrough = P.__init__.__globals__",
    "from dataclasses import fields, dataclass\n@dataclass\nclass P:\n    x: int = 1\n"
    "through = fields(P)[0]._field_type",
    # What follows had reached `__import__`, `exec`, frames or methods by name.
    "import copy\nfrom typing import Literal\nx = Literal['eval']\nx._name = '__builtins__'\n"
    "through = copy.copy(x)",
    "import copy\nfrom typing import List\n"
    "through = copy.copy(type(List[int])(list, 'eval', name='__builtins__'))",
    "import copy\nfrom typing import Iterable\nx = Iterable['eval']\nx._name = '__builtins__'\n"
    "through = copy.copy(x)",
    "from dataclasses import dataclass, fields\n@dataclass\nclass A:\n    x: int = 0\n"
    "fields(A)[0].name = 'x=open'\n@dataclass\nclass B(A):\n    pass\nthrough = B()",
    "from dataclasses import dataclass, field\nf = field(default=0)\n@dataclass\nclass A:\n    x: int = f\n"
    "f.name = 'x=open'\n@dataclass\nclass B(A):\n    pass\nthrough = B()",
    "from dataclasses import asdict, dataclass, fields\n@dataclass\nclass A:\n    x: int = 0\n"
    "fields(A)[0].name = '__reduce_ex__'\nthrough = asdict(A())",
    "from dataclasses import dataclass, fields, replace\n@dataclass(init=False)\nclass A(Exception):\n"
    "    x: int = 0\n    def __init__(self, **named):\n        self.named = named\n"
    "fields(A)[0].name = '__traceback__'\nthrough = replace(A()).named",
    "from dataclasses import dataclass, field\nclass F(type(field())):\n    name = 'x=open'\nthrough = F",
    "from dataclasses import dataclass, field\nclass S(str):\n    def __str__(self):\n"
    "        return 'x=open'\n"
    "f = field()\nf.name = S('x')\nthrough = f",
    "from dataclasses import dataclass\nfrom typing import NamedTuple\nclass S(str):\n"
    "    def __str__(self):\n"
    "        return 'x=open'\nthrough = dataclass(NamedTuple('P', [(S('x'), int)]))",
    "from dataclasses import dataclass\n"
    "through = dataclass(type('P', (), {'__annotations__': {'x=open': 1}}))",
    *(
        f"from dataclasses import dataclass\n@dataclass\nclass P({base}):\n    {name}: object = None\n"
        f"through = P"
        for base, name in (("AttributeError", "obj"), ("object", "gi_frame"), ("object", "_numerator"))
    ),
    *(
        f"from collections import ChainMap, namedtuple\nfrom fractions import Fraction\n"
        f"from typing import *\n"
        f"class G(namedtuple('P', 'gi_frame'), {base}):\n    pass\ng = (i for i in 'a')\n"
        f"{register}(type(g))\nmatch g:\n    case G(frame):\n        through = frame"
        for base, register in (
            ("Hashable", "G.register"),
            ("Sized", "super(G, G).register"),
            ("Iterable[int]", "Iterable.register"),
            ("Container", "(lambda c: [r for c in [c] for r in [c.register]][0])(G)"),
        )
    ),
    "from fractions import Fraction\nmatch Fraction:\n    case object(register=r):\n        through = r(str)",
    "import math\nclass M(type(math)):\n    def __init__(self):\n        super().__init__('os')\n"
    "through = M()",
    "import math\nthrough = type(math)('os')",
    "def f():\n    pass\nthrough = type(f)(f, {})",
    "def f():\n    pass\nclass F(type(f)):\n    pass\nthrough = F",
    "class C:\n    def __exit__(self, kind, error, trace):\n        self.kind = type(trace)\n"
    "        return True\n"
    "    def __enter__(self):\n        pass\nc = C()\nwith c:\n    1 / 0\nclass T(c.kind):\n"
    "    pass\nthrough = T",
    "through = type(type(lambda: 0))(int)",
    "through = type(lambda: 0).__kind__",
    "class A:\n    pass\nA.__add__ = 1\nthrough = True",
    "through = (1).__eq__",
    "through = (1).__add__(2)",
    "through = [].__init__",
    "from array import array\nthrough = array('q', [0])",
    "import re\nthrough = type(re.I)._convert_('X', 'os', lambda name: True)",
    "import re\nthrough = re.I.name",
    "import re\nthrough = re.enum",
    "import re\nthrough = re.copyreg",
    "import re\nthrough = re._compiler",
    "import re\nthrough = re.Scanner",
    "from re import _compiler\nthrough = True",
    "import operator\nthrough = operator.attrgetter('__class__')(1)",
    "import operator\nthrough = operator.methodcaller('__reduce__')(1)",
    "from operator import attrgetter\nthrough = True",
    "from operator import __getitem__\nthrough = True",
    "import string\nthrough = string.Formatter().format('{0.__class__}', 1)",
    "import string\nthrough = string.Template",
    "import copy\nthrough = copy.copyreg",
    "import copy\nthrough = copy.weakref",
    "import copy, math\nthrough = copy.copy(math)",
    "import copy\ndef g():\n    yield 1\nthrough = copy.copy(g())",
    "import copy\nclass A:\n    def __reduce__(self):\n        return (print, ())\nthrough = copy.copy(A())",
    "import copy\nclass A:\n    pass\na = A()\na.__deepcopy__ = lambda memo: 1\nthrough = copy.deepcopy(a)",
    "import sys\nthrough = sys.modules",
    "import sys\nthrough = sys._getframe()",
    "from sys import _getframe\nthrough = True",
    "import sys\nthrough = sys.path",
    "import sys\nthrough = sys.settrace",
    "import sys\nthrough = sys.stdout",
    "import hashlib\nthrough = hashlib.file_digest",
    "import heapq\nthrough = heapq.__about__",
    "import random\nthrough = random.SystemRandom().random()",
    "import random\nthrough = random._os",
    "import random\nthrough = random.os",
    "import random\nthrough = random.seed.__self__",
    "class A:\n    pass\nthrough = A()._A__x",
    "from fractions import Fraction\nx = Fraction(1, 2)\nx._denominator = 0\nthrough = True",
    "from fractions import Fraction\nclass A:\n    def f(self):\n        self._numerator = 3\n"
    "A.f(Fraction(1, 2))\nthrough = True",
    "from statistics import NormalDist\nthrough = NormalDist()._mu",
    "x = 3\nthrough = x._",
    "x = 3\nthrough = x._value_",
    "class _:\n    def f(self):\n        return self.__dict__\nthrough = _().f()",
    "class A:\n    def f(self):\n        return super().__class__\nthrough = A().f()",
    "class A:\n    def f(self):\n        return super().__getattribute__('x')\nthrough = A().f()",
    "class A:\n    def f(self):\n        return super().__reduce__()\nthrough = A().f()",
    "class A:\n    def __getattr__(self, name):\n        return 1\nthrough = A().x",
    "class A:\n    def __init_subclass__(cls):\n        pass\nthrough = True",
    "class A:\n    def __del__(self):\n        pass\nthrough = True",
]


def outcome(code: str) -> Execution:
    return run([steps(code)], until="answer")[0]


@pytest.mark.parametrize("code", HONEST)
def test_honest_programs_run(code):
    found = outcome(code)
    assert found.failure is None
    assert found.variables["answer"] == HONEST[code]


@pytest.mark.parametrize("code", ATTACKS)
def test_no_allowance_leads_further(code):
    found = outcome(code)
    assert found.failure is not None
    assert "through" not in found.variables


def test_what_annotations_are_made_of_is_not_a_value():
    code = next(code for code in HONEST if "import *" in code)
    assert outcome(code).variables == {"answer": 1}


def test_a_pattern_without_end_is_a_timeout():
    found = outcome("import re\nanswer = re.match('(a+)+$', 'a' * 40 + 'b')").failure
    assert found is not None
    assert found.kind == "timeout"


@pytest.mark.parametrize(
    "code",
    [
        "import random\nanswer = random.random()",
        "import random\nanswer = random.Random().random()",
        "import random\nrandom.seed()\nanswer = random.randint(1, 10**9)",
        "import statistics\nanswer = statistics.NormalDist().samples(1)",
    ],
)
def test_chance_is_the_same_in_one_layout_and_another_in_the_other(code):
    first, again, other = (run([steps(code)], second=second)[0].variables for second in (False, False, True))
    assert first == again != other


def test_the_message_of_a_refused_import_names_what_is_allowed():
    found = outcome("import os").failure
    assert found is not None
    assert "programs may import __future__, array, bisect, cmath, collections" in found.message


# Underscores on the library's own objects with which a program can do nothing that public names do not.
HARMLESS = screen._words(
    "_add _sub _mul _div _mod _divmod _floordiv _name _replace _asdict _make _fields _field_defaults "
    "_hash _mapping _defaults"
)


@dataclasses.dataclass
class _Sample:
    x: int = 1


def test_no_attribute_with_an_underscore_leads_into_the_library():
    """Every such attribute of what a program can hold is refused, or known to be harmless."""
    namespace = world.fresh_namespace()
    seen: set[int] = set()
    kept: list[object] = []
    names: set[str] = set()
    todo: list[object] = [
        *namespace["__builtins__"].values(),
        *(value for contents in world._MODULES.values() for value in contents.values()),
        *(re.compile("a"), re.match("a", "a"), re.compile("a").scanner("a")),
        *(world._TYPING[name][int] for name in ("List", "Optional", "ClassVar", "Literal", "Iterable")),
        *(
            world._TYPING["Callable"][[], int],
            world._TYPING["TypeVar"]("T"),
            world._TYPING["NewType"]("N", int),
        ),
        *(fractions.Fraction(1), decimal.Decimal(1).as_tuple(), decimal.getcontext(), decimal.localcontext()),
        *(dataclasses.fields(_Sample)[0], statistics.NormalDist(), random.Random(), ValueError("a")),
        *(functools.lru_cache(len), functools.partial(len), collections.Counter(), (i for i in "a")),
        *(statistics.linear_regression([1, 2], [1, 2]), functools.lru_cache(len).cache_info(), iter([])),
    ]
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        kept.append(value)
        assert not isinstance(value, (types.ModuleType, types.FrameType, types.CodeType)), value
        for name in dir(value):
            if name[:1] == name[-1:] == "_" or name in screen._MACHINERY:
                continue
            if name.startswith("_"):
                names.add(name)
            elif len(kept) < 20_000:
                with contextlib.suppress(AttributeError, ValueError, TypeError):
                    todo.append(getattr(value, name))
        assert type(value).__module__ != "typing" or type(value) is types.FunctionType, value
        todo.append(world._class_of(value))
    assert names - screen._LIBRARY - HARMLESS == set()
    assert len(kept) > 1_000
