"""What a program can do that owns its interpreter: these workers have no screen, and real imports."""

import ast
import sys
from collections.abc import Iterator
from itertools import pairwise

import pytest

from stepbox import Execution, Limits, pool, process
from stepbox import run as run_isolated
from stepbox.channel import NOTHING_REFUSED

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls differ elsewhere")

NO_SCREEN = """
import builtins
from stepbox import program, screen, world
world._SHARED_BUILTINS.update(vars(builtins))
program.screen = lambda tree: screen.Screened()
world._importer = lambda: __import__
from stepbox import worker
def confine(real=worker.confine_worker):
    lines = [line.split() for line in open("/proc/self/maps") if " rw-p " in line and "[stack]" not in line]
    builtins.MEMORY = [[*(int(end, 16) for end in line[0].split("-")), line[-1]] for line in lines]
    return real()
worker.confine_worker = confine
main = worker.main
"""
VICTIM = """
import statistics
from fractions import Fraction
from decimal import Decimal
from collections import Counter
secret = 'do not tell 4711'
a = [Fraction(3, 4) + Fraction(1, 4), str(Decimal(1) / 3), isinstance('a', Fraction)]
b = statistics.NormalDist(0, 1).samples(2)
c = Counter('aab').most_common(1) + [sum(i for i in range(10)), len(bytearray(60 << 20))]
answer = max(c[1:])
"""
HOSTILE = {
    "rewrites the recorder": "import sys\n"
    "r = sys.modules['stepbox.program']\n"
    "r.FullRecord.changes = r.PlainRecord.changes = lambda self, *names: '[{\"answer\":13},[]]\\n'\n"
    "x = 1",
    "rewrites the sheet": "import gc, mmap\n"
    "for sheet in [o for o in gc.get_objects() if hasattr(o, '_memory')]:\n"
    "    sheet._memory[:] = b'\\xff' * len(sheet._memory)",
    "claims success and leaves": "import os\nos._exit(0)",
    "fills the memory": "x = bytearray(180 << 20)",
    "changes the library": "import fractions, decimal, random, statistics\n"
    "fractions.Fraction.__add__ = lambda a, b: 7\nrandom.seed(5)\ndecimal.getcontext().prec = 2\n"
    "fractions.Fraction.numerator = 3\nstatistics.NormalDist.samples = lambda *a: [1]",
    "stops the clock": "import signal\nsignal.setitimer(signal.ITIMER_PROF, 0)\nwhile True:\n    pass",
    "kills whoever started it": "import os\n"
    "try:\n    os.kill(os.getppid(), 9)\nexcept OSError as e:\n    x = e.errno",
    "multiplies": "import os\ntry:\n    os.fork()\nexcept OSError as e:\n    x = e.errno",
    "uses what is open": "import os\nx = []\n"
    "for d in range(300):\n    try:\n        os.write(d, b'x' * 100)\n        x.append(d)\n"
    "    except OSError:\n        pass",
    "crashes": "import ctypes\nctypes.string_at(1)",
}
ATTEMPTS = list(HOSTILE)


@pytest.fixture(autouse=True)
def workers_without_a_screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    boot = process._BOOT.replace("from stepbox.worker import main\n", NO_SCREEN)
    assert NO_SCREEN in boot
    monkeypatch.setattr(process, "_BOOT", boot)
    monkeypatch.setattr(pool, "_SHARED", pool._Shared())
    monkeypatch.setattr(pool, "screened", lambda steps: (steps, NOTHING_REFUSED))
    monkeypatch.setattr(pool, "MAX_WORKERS", 1)  # all programs come from one zygote
    yield
    for one in pool._SHARED.pools.values():
        one.close()


def run(*codes: str, second: bool = False) -> list[Execution]:
    programs = [tuple(ast.unparse(node) for node in ast.parse(code).body) for code in codes]
    # Long enough to fill the memory on any machine: which limit is met first must not depend on its speed.
    limits = Limits(cpu_seconds=0.6, wall_seconds=5.0)
    return run_isolated(programs, until="answer", limits=limits, second=second)


def test_a_program_computes_the_same_alone_before_and_after_any_that_owns_its_interpreter():
    (alone,) = run(VICTIM)
    assert alone.failure is None
    batch = [code for name in ATTEMPTS for code in (HOSTILE[name], VICTIM)]
    outcomes = run(VICTIM, *batch)
    assert outcomes[0] == alone
    assert {
        name: found == alone for name, found in zip(ATTEMPTS, outcomes[2::2], strict=True)
    } == dict.fromkeys(ATTEMPTS, True)


def test_what_such_a_program_says_about_itself_is_an_execution_or_a_failure():
    found = dict(zip(ATTEMPTS, run(*HOSTILE.values()), strict=True))
    assert found["rewrites the recorder"].changes[-1] == {"answer": (13,)}  # its own lie about itself
    for name in ("rewrites the sheet", "claims success and leaves"):
        assert found[name].failure is not None
        assert "refused" in found[name].failure.message
    stopped, crashed = found["stops the clock"].failure, found["crashes"].failure
    assert stopped is not None
    assert stopped.kind == "timeout"
    assert crashed is not None
    assert "SIGSEGV" in crashed.message
    for name in ("kills whoever started it", "multiplies"):
        assert found[name].changes[-1]["x"] == (1,)  # EPERM
    assert found["uses what is open"].changes[-2:] == ({"x": ([],)}, {"d": (299,)})


SEARCH = """
import builtins, ctypes
ctypes.pythonapi.sbrk.restype = ctypes.c_void_p
word = '1174 ' + 'llet'  # backwards, so that this program does not find itself
size = found = own = 0
for start, end, name in builtins.MEMORY:
    end = ctypes.pythonapi.sbrk(0) if name == '[heap]' else end
    memory = ctypes.string_at(start, end - start)
    size += len(memory)
    own += memory.count(b'stepbox')
    memory = memory[::-1]
    found += memory.count(word.encode())
del memory, word, start, end, name
"""


def test_no_text_of_another_program_is_in_its_memory():
    *_, searched = run(*[VICTIM] * 5, SEARCH)
    assert searched.failure is None, searched
    seen = {name: value[0] for changes in searched.changes for name, value in changes.items() if value}
    assert seen["size"] > 4 << 20
    assert seen["own"] > 10  # the search finds what is there
    assert seen["found"] == 0


def test_the_order_of_any_two_programs_does_not_matter():
    codes = [VICTIM, *HOSTILE.values()]
    alone = dict(zip(codes, run(*codes), strict=True))
    assert run(*reversed(codes)) == list(reversed(alone.values()))
    brief = [code for code in codes if code != HOSTILE["stops the clock"]]  # that takes its whole time
    for first, second in pairwise(brief):
        assert run(second, first) == [alone[second], alone[first]]
