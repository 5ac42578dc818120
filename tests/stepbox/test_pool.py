import ast
import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hostile_runner import living_sessions

from stepbox import RISK, BoxError, Execution, Limits, Opaque, WeakBox, inspect, pool, process, program
from stepbox import run as run_isolated
from stepbox.walls import ACTIVE, LANDLOCK, SECCOMP
from stepbox.wire import MAX_INTEGER_BITS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="workers need fork")
linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")

SHORT = Limits(cpu_seconds=0.2)
LONG_LOOP = "n = 0\nfor i in range(10**7):\n    n += i"  # long enough for somebody to interrupt
ENDLESS = "n = 0\nwhile True:\n    n += 1"
POINTS = """
class P:
    def __init__(self, v):
        self.v = v
    def __add__(self, other):
        return P(self.v + other.v)
x = (P(1) + P(2)).v
"""
PRECISION = """
from decimal import Decimal, localcontext
with localcontext() as context:
    context.prec = 3
    x = str(Decimal(1) / 3)
"""
SPEECHLESS = """
class E(Exception):
    def __str__(self):
        while True:
            pass
raise E(1)
"""
HELD = """
def g():
    try:
        yield
    finally:
        while True:
            pass
"""
CONTEXT = """
class C:
    def __enter__(self):
        return 5
    def __exit__(self, *error):
        return True
with C() as x:
    1 / 0
"""


def steps(code: str) -> tuple[str, ...]:
    return tuple(ast.unparse(node) for node in ast.parse(textwrap.dedent(code)).body)


def run(code: str, limits: Limits | None = None) -> Execution:
    return run_isolated([steps(code)], until="answer", limits=limits)[0]


def values(execution: Execution) -> dict:
    """What the variables hold at the end."""
    held: dict = {}
    for changes in execution.changes:
        held.update(changes)
    return {name: value[0] for name, value in held.items() if value is not None}


def failed(execution: Execution) -> tuple[str, int]:
    assert execution.failure is not None, execution
    return execution.failure.kind, execution.failure.step


def test_every_step_reports_what_it_changed():
    execution = run("x = [1, 2, 3]\ny = x\ny.append(4)\nz = sum(x)\nz = 10")
    assert execution.changes == (
        {"x": ([1, 2, 3],)},
        {"y": ([1, 2, 3],)},
        {"x": ([1, 2, 3, 4],), "y": ([1, 2, 3, 4],)},
        {"z": (10,)},
        {},
    )
    assert execution.failure is None


def test_a_name_that_stops_being_a_value_is_gone():
    execution = run("x = [5]\ndel x\nx = [5]\ndef x():\n    pass\nx = [5]\nimport math\nclass x:\n    pass")
    assert execution.changes == (
        {"x": ([5],)},
        {"x": None},
        {"x": ([5],)},
        {"x": None},
        {"x": ([5],)},
        {},
        {"x": None},
    )


def test_functions_modules_and_classes_are_no_values():
    execution = run(
        """
        import math, functools
        from math import sqrt
        from collections import Counter, namedtuple
        f = lambda: 1
        g = functools.partial(f)
        h = [].append
        k = str.join
        L = list[int]
        U = int | str
        P = namedtuple('P', 'x')
        @functools.cache
        def c():
            pass
        t = type(1)
        p = print
        """
    )
    assert execution.failure is None
    assert values(execution) == {}


CLEAN_UP = """
def f():
    def g():
        try:
            yield
        finally:
            global a, b, c
            a = b = c = 1
    started = g()
    next(started)
    return lambda: started
f = f()
f = 2
answer = a
"""


def test_clean_up_code_of_a_program_never_runs_in_its_recorder():
    execution = run(CLEAN_UP)
    assert execution.failure is None
    assert execution.changes[2] == {"f": (2,), "a": (1,), "b": (1,), "c": (1,)}


def test_a_range_of_endless_numbers_is_a_failure_of_memory():
    execution = run("x = [range(10**4000)]\ny = range(10**5000)")
    assert execution.changes == ({"x": ([Opaque("range")],)},)
    assert failed(execution) == ("memory", 1)


def test_the_answer_ends_the_program_also_inside_a_block():
    execution = run("for i in range(5):\n    if i == 3:\n        answer = i\nx = 1 / 0")
    assert execution.failure is None
    assert values(execution) == {"answer": 3, "i": 4}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from fractions import Fraction\nx = Fraction(2, 6)", Fraction(1, 3)),
        ("from decimal import Decimal\nx = Decimal('1.50')", Decimal("1.50")),
        ("x = {'a': (1, 2.5), 3: {4, 5}}", {"a": (1, 2.5), 3: {4, 5}}),
        ("x = [None, True, b'a', 'ü', 2j, frozenset([1])]", [None, True, b"a", "ü", 2j, frozenset([1])]),
        ("from collections import Counter\nx = Counter('aab')", {"a": 2, "b": 1}),
        ("from collections import namedtuple\nx = namedtuple('P', 'a b')(1, 2)", (1, 2)),
        ("class A(int):\n    pass\nx = A(3)", Opaque("A")),
        ("x = (i for i in [1])", Opaque("generator")),
        ("x = []\nx.append(x)", Opaque("list")),
        ("x = []\nfor i in range(10**5):\n    x = [x]", Opaque("list")),
        ("x = '\\ud800'", "\ud800"),
        ("µ = [1]\nx = μ", [1]),
    ],
)
def test_values_arrive_as_plain_data(code, expected):
    execution = run(code)
    assert execution.failure is None
    arrived = values(execution)["x"]
    assert arrived == expected
    assert type(arrived) is type(expected)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from statistics import mean, pstdev\nx = mean([1, 2, 6]) + pstdev([1, 1])", 3),
        ("import itertools as i, functools as f\nx = f.reduce(lambda a, b: a * b, i.chain([2], [3]))", 6),
        (PRECISION, "0.333"),
        (POINTS, 3),
        (CONTEXT, 5),
        ("try:\n    x = 1 / 0\nexcept ZeroDivisionError as e:\n    x = str(e)", "division by zero"),
        ("def f(n):\n    return 1 if n < 2 else n * f(n - 1)\nx = f(20)", 2432902008176640000),
        ("n = 3\nx = [n * i for i in range(3)]", [0, 3, 6]),
        ("match [1, 2]:\n    case [a, b]:\n        x = a + b", 3),
        ("x = '{:.2f}|{}'.format(1, 'a') + f'{2:>3}' + '%d' % 3", "1.00|a  23"),
        ("if __name__ == '__main__':\n    x = 1", 1),
        ("from collections import Counter\nx = Counter('aab').most_common(1)", [("a", 2)]),
        ("x = 0\ndef add(n):\n    global x\n    x += n\nadd(3)\nadd(4)", 7),
        ("id = 4\nx = id + 1", 5),
        ("x = 5\nprint('a', 'b', sep='', end='')", 5),
    ],
)  # fmt: skip
def test_general_programs_mean_what_they_mean_in_python(code, expected):
    execution = run(code)
    assert execution.failure is None, execution
    assert values(execution)["x"] == expected


@pytest.mark.parametrize(
    ("code", "kind", "step", "message"),
    [
        ("x = [1]\ny = x[0] / 0\nz = 2", "error", 1, "ZeroDivisionError: division by zero"),
        ("raise SystemExit(0)", "error", 0, "SystemExit: 0"),
        ("x = [1]\nraise KeyboardInterrupt", "error", 1, "KeyboardInterrupt"),
        ("raise GeneratorExit", "error", 0, "GeneratorExit"),
        ("def f():\n    f()\nf()", "error", 1, "RecursionError: maximum recursion"),
        ("x = [1]\nreturn 1", "error", 1, "SyntaxError: 'return' outside function"),
        ("x = [1]\nimport os", "forbidden", 1, "import of 'os' is not allowed"),
        ("x = [1]\ny = open('a')", "forbidden", 1, "'open' is not available"),
        ("x = [1]\ny = ().__class__", "forbidden", 1, "'__class__'"),
        ("x = [1]\ny = [0] * 10**12", "memory", 1, "MemoryError"),
        (f"x = [1]\ny = x[0] << {MAX_INTEGER_BITS}", "memory", 1, "integer"),
        ("x = [1]\nwhile True:\n    pass", "timeout", 1, "0.2 s of processor time"),
        ("x = [1]\nwhile 1:\n    try:\n        x[5]\n    except:\n        pass", "timeout", 1, "0.2 s"),
        ("x = [1]\ny = max(iter(int, 1))", "timeout", 1, "processor time"),
        ("x = iter([1])\nfor i in range(10**5):\n    x = map(abs, x)\ny = next(x)", "error", 2, "SIGSEGV"),
        (SPEECHLESS, "error", 1, "E"),
        ("raise ValueError('a' * 10**6)", "error", 0, "ValueError: aaa"),
        ("raise ValueError(10**5000, [1])", "error", 0, "ValueError: <int>, <list>"),
        ("raise OSError(2, 'no', 'file')", "error", 0, "FileNotFoundError: 2, no"),
        ("x = {}[1, 2]", "error", 0, "KeyError: <tuple>"),
        ("class E(SyntaxError):\n    msg = property(lambda self: 1 / 0)\nraise E", "error", 1, "E"),
        ("class E:\n    def __repr__(self):\n        1 / 0\nraise OSError(2, 'no', E())", "error", 1, "no"),
    ],
)  # fmt: skip
def test_a_failure_has_a_kind_a_step_and_a_reason_and_keeps_the_good_beginning(code, kind, step, message):
    execution = run(code, SHORT)
    assert failed(execution) == (kind, step)
    assert execution.failure is not None
    assert message in execution.failure.message
    assert len(execution.failure.message) <= 300
    assert len(execution.changes) == step
    if "x = [1]" in code:
        assert execution.changes[0] == {"x": ([1],)}


def test_states_that_are_too_large_to_keep_are_a_failure_of_memory():
    assert failed(run("x = list(range(3000))\ny = x[1:]\nz = 1", Limits(reply_bytes=20_000))) == ("memory", 1)


def test_a_text_over_the_limit_is_not_even_sent():
    (execution,) = run_isolated([("x = 1",) * 100], until="answer", limits=Limits(program_bytes=100))
    assert failed(execution) == ("memory", 0)


def test_limits_have_to_be_positive():
    with pytest.raises(ValueError, match="cpu_seconds is 0"):
        Limits(cpu_seconds=0)


def test_a_batch_is_answered_in_order_around_the_programs_that_fail():
    codes = [f"x = [{number}]" for number in range(100)]
    codes[10] = "while True:\n    pass"
    codes[11] = "x = [0] * 10**12"
    codes[40] = "import os"
    codes[41] = "class A:\n    pass\nx = [41]"
    codes[70] = ""
    executions = run_isolated([steps(code) for code in codes], until="answer", limits=SHORT)
    kinds = {number: e.failure.kind for number, e in enumerate(executions) if e.failure}
    assert kinds == {10: "timeout", 11: "memory", 40: "forbidden"}
    assert executions[70].changes == ()
    for number in set(range(100)) - {10, 11, 40, 70}:
        assert values(executions[number])["x"] == [number]


CANARY = """
import math, statistics, decimal
from fractions import Fraction
from collections import Counter
a = [math.pi, math.floor(1.5), statistics.median([1, 2, 9]), str(decimal.Decimal(1) / 3)]
b = [str(Fraction(1, 3).limit_denominator()), isinstance('a', Fraction), Counter('aab').most_common(1)]
c = [abs(-3), len([1]), sum([1, 2])]
"""


@pytest.mark.parametrize(
    "code",
    [
        "import math\nmath.pi = 3\nmath.floor = math.ceil",
        "import statistics\nstatistics.median = lambda x: 0",
        "import functools, statistics\nfunctools.wraps(len)(statistics.median)",
        "from fractions import Fraction\nFraction.limit_denominator = lambda self: 7",
        "from fractions import Fraction\nFraction.register(str)",
        "from collections import Counter\nCounter.most_common = lambda self, n: 'forged'",
        "import decimal\ndecimal.getcontext().prec = 2",
        "from decimal import *\nsetcontext(Context(prec=2))",
        "abs = len = sum = lambda x: 7",
        HELD + "x = g()\nnext(x)",
        HELD + "x = [g()]\nnext(x[0])\nx.append(x)\ndel x",
    ],
)
def test_one_program_leaves_nothing_to_the_next_in_its_batch(code):
    before, _, after = run_isolated([steps(CANARY), steps(code), steps(CANARY)], until="answer", limits=SHORT)
    assert before.failure is None
    assert after == before
    assert values(after)["a"] == [3.141592653589793, 1, 2, "0.3333333333333333333333333333"]


def test_sets_of_texts_have_the_same_order_in_every_worker(fresh_pool):
    code = "x = list({'a', 'b', 'c', 'd', 'e'})\ny = hash('a')"
    first = run(code)
    fresh_pool()
    assert run(code) == first


def test_threads_share_the_pool():
    programs = [
        [steps(f"x = [{i}]\nfor k in range({j}):\n    x.append(k)") for j in range(5)] for i in range(8)
    ]
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda batch: run_isolated(batch, until="answer"), programs))
    for i, executions in enumerate(results):
        assert [values(e)["x"] for e in executions] == [[i, *range(j)] for j in range(5)]


def test_an_interpreter_that_does_not_start_is_an_error_with_advice(fresh_pool, monkeypatch, tmp_path):
    for executable, reason in ((tmp_path / "no-python", "No such file"), (Path("/bin/false"), "it ended")):
        fresh_pool()
        monkeypatch.setattr(sys, "executable", str(executable))
        with pytest.raises(BoxError, match=f"{reason}.*ulimit -u"):
            run("x = [1]")


WITHOUT = {"seccomp": "walls._FILTER = None", "landlock": "walls._LANDLOCK_CREATE_RULESET = 100_000"}


@pytest.fixture(params=WITHOUT)
def missing(request, fresh_pool, monkeypatch) -> str:
    """A wall that workers of this test do not have."""
    without = f"from stepbox import walls\n{WITHOUT[request.param]}\nmain()"
    monkeypatch.setattr(process, "_BOOT", process._BOOT.replace("main()", without))
    return request.param


@linux_only
def test_without_either_of_the_kernels_walls_no_program_runs_and_the_risk_is_named(missing):
    with pytest.raises(WeakBox, match=rf"{missing}.*inactive.*{RISK}"):
        run("x = [1]")
    found = inspect().protections
    assert {name.split()[0] for name in (SECCOMP, LANDLOCK) if found[name] != ACTIVE} == {missing}
    with pytest.raises(WeakBox):
        run("x = [1]")  # also in the worker that was inspected


@linux_only
def test_who_accepts_a_weak_box_gets_it(missing):
    assert run_isolated([("x = [1]",)], allow_weak=True)[0].variables == {"x": [1]}


@pytest.fixture
def fresh_pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """A pool of one's own, and a way to get another."""

    def renew() -> None:
        pool._SHARED.get().close()
        monkeypatch.setattr(pool, "_SHARED", pool._Shared())

    monkeypatch.setattr(pool, "_SHARED", pool._Shared())
    yield renew
    pool._SHARED.get().close()


def soon(condition: Callable[[], object], seconds: float = 20.0) -> object:
    """The first true answer of `condition`, asked again and again."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.001)
    return answer


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def worker_pids() -> list[int]:
    """Of those that have settled: before, a worker has a child that examines its walls."""
    return [worker.process.pid for worker in pool._SHARED.get().workers if worker.protections]


def interrupted(code: str, times: int, victim: Callable[[], int | None]) -> Execution:
    """The execution of a long program whose process is killed so many times."""
    run("x = [1]")
    soon(lambda: child_at_work() is None)
    results: list[Execution] = []
    limits = Limits(cpu_seconds=60, wall_seconds=90)
    thread = threading.Thread(target=lambda: results.append(run(code, limits)))
    thread.start()
    killed: set[int | None] = {None}
    while len(killed) <= times:
        soon(lambda: victim() not in killed)
        pid = victim()
        if pid not in killed:
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
    thread.join()
    return results[0]


def child_at_work() -> int | None:
    return next((child for worker in worker_pids() for child in children(worker)), None)


def worker_at_work() -> int | None:
    return next((worker for worker in worker_pids() if children(worker)), None)


@linux_only
@pytest.mark.parametrize("victim", [child_at_work, worker_at_work])
def test_a_program_whose_process_is_killed_is_run_again(victim, fresh_pool):
    execution = interrupted(LONG_LOOP, 1, victim)
    assert execution.failure is None
    assert values(execution)["n"] == sum(range(10**7))


@linux_only
@pytest.mark.parametrize(("victim", "kind"), [(child_at_work, "memory"), (worker_at_work, "error")])
def test_a_program_whose_process_is_killed_twice_is_reported(victim, kind, fresh_pool):
    execution = interrupted(ENDLESS, 2, victim)
    assert failed(execution)[0] == kind
    assert execution.failure is not None
    assert "killed" in execution.failure.message
    assert not execution.failure.is_own
    assert run("x = [1]").failure is None


@linux_only
def test_a_worker_killed_while_idle_is_replaced(fresh_pool):
    run("x = [1]")
    (pid,) = worker_pids()
    os.kill(pid, signal.SIGKILL)
    assert run("x = [2]").failure is None
    assert worker_pids() != [pid]


@linux_only
def test_a_worker_knows_nothing_of_this_environment(fresh_pool, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "do not tell")
    run("x = [1]")
    (pid,) = worker_pids()
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"PYTHONHASHSEED=0" in environment
    assert b"SECRET_TOKEN" not in environment
    assert len(list(Path(f"/proc/{pid}/fd").iterdir())) <= 5


SCRIPT = """
import os, signal, sys, threading, time
from stepbox import Limits, pool, run
busy = ("while True:\\n    pass",)
if sys.argv[1] == "busy":
    limits = Limits(cpu_seconds=100, wall_seconds=100)
    start = lambda: run([busy] * 2, until="answer", limits=limits)
    threading.Thread(target=start, daemon=True).start()
    while not (pool._SHARED.get().workers and
               open(f"/proc/{pool._SHARED.get().workers[0].process.pid}/task/"
                    f"{pool._SHARED.get().workers[0].process.pid}/children").read()):
        time.sleep(0.01)
else:
    run([("x = [1]",)], until="answer")
print(*(worker.process.pid for worker in pool._SHARED.get().workers), flush=True)
exec(sys.argv[2])
"""


@linux_only
@pytest.mark.parametrize("activity", ["idle", "busy"])
@pytest.mark.parametrize(
    "end", ["sys.exit(0)", "1 / 0", "os.kill(os.getpid(), signal.SIGKILL)", "os._exit(3)"]
)
def test_no_process_stays_behind_however_the_parent_ends(end, activity):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, activity, end], capture_output=True, text=True, timeout=60, check=False
    )
    pids = {int(pid) for pid in done.stdout.split()}
    assert pids, done.stderr
    soon(lambda: not pids & living_sessions())


@linux_only
def test_a_forked_process_gets_workers_of_its_own():
    script = """
import os
from stepbox import pool, run
changes = lambda: run([("x = [1]",)], until="answer")[0].changes
assert changes() == ({"x": ([1],)},)
before = [worker.process.pid for worker in pool._SHARED.get().workers]
child = os.fork()
if child == 0:
    assert pool._SHARED.pools == {}
    assert changes() == ({"x": ([1],)},)
    assert before != [worker.process.pid for worker in pool._SHARED.get().workers]
    raise SystemExit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert changes() == ({"x": ([1],)},)
assert before == [worker.process.pid for worker in pool._SHARED.get().workers]
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_a_stand_in_loses_is_not_looked_for_in_the_real_module():
    found = run(
        "import collections\ncollections.abc = 1\n"
        "def g():\n    try:\n        yield\n    finally:\n        del collections.abc\n"
        "deque = g()\nx = next(deque)\n"
        "from collections import deque, abc\nanswer = 1"  # rebinding `deque` runs the `finally`
    )
    assert found.failure is not None
    assert "cannot import name 'abc'" in found.failure.message


@pytest.mark.parametrize(
    "decorator",
    [
        "(lambda f: Evil())",  # compared by its own `==`
        "(lambda f: classmethod(property(f)))",  # looked up by its own code
    ],
)
def test_a_state_is_recorded_without_calling_what_a_class_binds_to_hash(decorator):
    found = run(
        "calls = []\n"
        "class Evil:\n    def __eq__(self, other):\n        calls.append(1)\n        return True\n"
        f"class T(tuple):\n    _fields = ()\n    @{decorator}\n"
        "    def __hash__(self):\n        calls.append(1)\n"
        "t = T()\nanswer = len(calls)"
    )
    assert (found.failure, found.variables["answer"]) == (None, 0)


@pytest.mark.parametrize(
    "code",
    [
        "a = [1]\nb = a\nb.append(2)",
        "a = [1]\nadd = a.append\nadd(2)",
        "a = [1]\nit = map(a.append, [2, 3])\nx = next(it)",
        "import math\na = [1]\nmath.x = a\nmath.x.append(2)",
        "e = [1]\nfrom math import *",
        "a = [1]\ndef f():\n    a.append(2)\nx = f()",
        "a = [1]\ndef f():\n    global a\n    a = 5\nx = f()",
        "a = [1]\ndef g():\n    try:\n        yield\n    finally:\n        a.append(2)\n"
        "g = g()\nx = next(g)\ng = 0",
        "a = [1]\nclass C:\n    def __add__(self, other):\n        a.append(other)\nc = C()\nx = c + 1",
        "a = [1]\nfor i in range(2):\n    b = a\n    b.append(i)",
        "a = [1]\na += [2]\nx = 1\nx = [2]\nx = 3\ndel a",
        "a = [1]\nx = 2\nmatch [3]:\n    case [a]:\n        pass",
        "a = [[]] * 2\nb = a[0]\nx = 1\nb.append(x)\ny = 2",
        "from functools import partial\na = [1]\np = partial(a.append, 2)\nx = 1\ny = p()",
    ],
)
def test_no_change_escapes_the_recorder_that_saves_work(code):
    first, second = (run_isolated([steps(code)], second=second)[0] for second in (False, True))
    assert first.failure is None
    assert first == second


def test_recording_large_lists_is_not_charged_to_the_program():
    found = run("".join(f"v{n} = [{n}] * 200000\n" for n in range(30)), limits=Limits(cpu_seconds=0.3))
    assert found.failure is None


def test_a_step_that_calls_nothing_of_the_program_changes_only_what_it_binds():
    record, space = program.FullRecord({}), {"f": len, "n": 2, "x": [1], "math": math}

    def reach(text: str) -> object:
        return record.reach(compile(text, "", "exec"), space)

    assert reach("def f():\n    return 1") is None
    assert reach("v = [n] * 200000") == {"v", "n"}
    assert reach("v = f()") is None
    assert reach("v = x") is None
    assert reach("v = math.pi") == {"v", "math", "pi"}
    assert reach("def g():\n    math.pi = f") is None
    assert reach("v = math.pi") is None


def test_many_long_lists_beside_a_function_cost_little():
    lists = "\n".join(f"v{i} = [{i}] * 100000" for i in range(16))
    assert run(f"def f():\n    return 1\n{lists}\nanswer = f()").failure is None
