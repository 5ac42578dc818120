"""Throw mutated programs at `trace` and check that nothing crashes, hangs, leaks or escapes.

    python tests/cases/fuzz.py --programs 1000000 --seed 7 --curve memory.csv
    python tests/cases/fuzz.py --curve memory.csv --draw memory.svg

`--curve` writes how the memory of this process develops: it has to be flat once the caches are full. The file
grows with every batch; Ctrl-C ends a run after the batch under way, with a verdict on what was seen.
Mutants are made from ordinary and from hostile programs, on the level of characters, lines, tokens and
trees. Among them are attacks of known kinds, made anew each time, each with a rule of its own: templates and
attributes of exceptions show nothing of Python's insides, no method of a class is called by the recorder,
values of one hash cost this process little, and no program passes tests by comparing in its own way.
The first one that breaks a rule is printed after `broken:`, and the exit code is 1.
"""

import argparse
import ast
import csv
import io
import json
import os
import random
import signal
import sys
import time
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import hostile_runner

from partway import Trace
from partway.language import python, trace_all
from partway.language.python import Memo
from stepbox import pool
from straightline import parsing, renaming
from undertest import passes

LIMITS = pool.Limits(cpu_seconds=0.02, wall_seconds=30.0, memory_bytes=80 << 20)
HOSTILE = Path(__file__).parents[1] / "hostile.jsonl"
SETTLED = 200_000  # programs, after which memory must not grow
ORDINARY = [
    "n0 = 48\nt0 = n0 / 2\nanswer = n0 + t0",
    "import math\nr = 3\narea = math.pi * r ** 2\nanswer = round(area, 2)",
    "total = 0\nfor i in range(1, 11):\n    if i % 3 == 0:\n        total += i\nanswer = total",
    "def fib(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a\nx = fib(9)",
    "prices = {'apple': 2, 'pear': 3.5}\ncounts = {'apple': 4, 'pear': 2}\n"
    "answer = sum(prices[k] * counts[k] for k in prices)",
    "from fractions import Fraction\nparts = [Fraction(1, k) for k in (2, 3, 6)]\nanswer = sum(parts)",
    "words = 'the quick brown fox'.split()\nlengths = [len(w) for w in words]\nanswer = max(lengths)",
    "import statistics\ndata = [4, 8, 15, 16, 23, 42]\nm = statistics.mean(data)\nanswer = 2 * m",
    "from itertools import combinations\npairs = list(combinations(range(6), 2))\nanswer = len(pairs)",
    "from collections import Counter\nc = Counter('mississippi')\nanswer = c.most_common(1)[0][1]",
    "n = 27\nk = 0\nwhile n != 1:\n    n = n // 2 if n % 2 == 0 else 3 * n + 1\n    k += 1\nanswer = k",
    "class A:\n    def __init__(self, w, h):\n        self.w = w\n        self.h = h\na = A(3, 4)\nx = a.w",
    "try:\n    x = int('12a')\nexcept ValueError:\n    x = -1\nfinally:\n    y = 2\nanswer = f'{x:>4}|{y}'",
    "from functools import reduce\nxs = [1, 2, 3, 4]\nanswer = reduce(lambda a, b: a * b, xs)",
    "import decimal\nwith decimal.localcontext() as c:\n    c.prec = 6\n    answer = decimal.Decimal(1) / 7",
]
WORDS = """
    __class__ __builtins__ __import__ eval exec open getattr type super print abs sum max min len range iter
    list dict set str int float format join math os sys self answer x y i n lambda yield await async global
    nonlocal del return import from as with while for if else try except finally raise match case class def
    10**9 10**18 -1 0 1 2 1e308 0.1 True None [] {} () '' 'a' ** // << >> % @ := * + - / == < in not and or
    is . , : ; ( ) [ ] { } = -> # ... f'{x}' '{0.real}' b'' 1j
"""
SPICE = [*WORDS.split(), " ", "\n", "\n    ", "\t", "\\", "\x0c", "\x00", "é", "µ", "\u2028", "\ud800"]
SHARE_OF_ATTACKS = 8  # one mutant in so many is such an attack
TIMED, JUDGED = 4, 12  # in a batch: programs whose time is taken, cheats whose tests are run
MOST_SECONDS = 0.12  # for one program, in this process, on a machine that is busy with others
INSIDES = ("<class", "<built-in", "<function", "<module", "<frame", "<code", "mappingproxy", "-> int")
OUR_OWN_MISTAKES = ("worker ended with status", "reply was refused", "worker ended without")


def main() -> None:
    parser = argparse.ArgumentParser(description="Throw mutated programs at `trace`.")
    parser.add_argument("--programs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=2_048)
    parser.add_argument("--curve", type=Path, help="a CSV file for programs, resident bytes and seconds")
    parser.add_argument("--caches", type=int, help="megabytes of each cache, to see the curve flat sooner")
    parser.add_argument(
        "--seeds", type=Path, nargs="*", default=[], help="JSONL files with a 'code' per line"
    )
    parser.add_argument("--draw", type=Path, metavar="FILE.svg", help="only draw the curve that is there")
    options = parser.parse_args()
    if options.draw:
        draw(options.curve, options.draw)
        return
    extra = [json.loads(line)["code"] for path in options.seeds for line in path.read_text().splitlines()]
    curve = options.curve and options.curve.resolve()
    os.chdir(os.environ.get("TMPDIR", "/"))
    if options.caches:
        shrink_caches(options.caches << 20)
    stop_on_signals()
    try:
        print(json.dumps(run(options.programs, options.seed, options.batch, extra, True, curve), indent=1))
    except AssertionError as broken:
        sys.exit(f"broken: {broken}")


def draw(curve: Path, picture: Path) -> None:
    """The memory of the process that traced, against the number of programs."""
    import matplotlib.pyplot as plt

    with curve.open(encoding="utf-8") as stream:
        rows = [
            (int(row["programs"]) / 1e3, int(row["resident_bytes"]) / 1e6) for row in csv.DictReader(stream)
        ]
    plt.rcParams["svg.hashsalt"] = "fuzz"
    figure, axes = plt.subplots(figsize=(8, 2.6), layout="constrained")
    axes.plot(*zip(*rows, strict=True), color="#0072b2")
    axes.set(
        ylim=(0, None),
        xlim=(0, None),
        xlabel="thousands of programs",
        ylabel="MB held",
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    figure.savefig(picture, metadata={"Date": None})


def shrink_caches(size: int) -> None:
    """Give every cache that a program's text may fill `size` bytes instead of the usual tens of megabytes."""
    global SETTLED
    SETTLED = 40_000
    python._memos = defaultdict(lambda: Memo(size))
    for cache in (parsing.known_lines, renaming._blanks):
        cache._half = cache._most = size // 2


def run(
    programs: int,
    seed: int,
    batch: int = 512,
    extra: Sequence[str] = (),
    show: bool = False,
    curve: Path | None = None,
) -> dict[str, Any]:
    """Trace so many mutants and count their outcomes; an AssertionError names one that broke a rule.

    Ctrl-C, or a signal to end, ends it after the batch that is under way; what was seen until then is told.
    """
    rng = random.Random(seed)
    hostile = [json.loads(line)["code"] for line in HOSTILE.read_text(encoding="utf-8").splitlines()]
    sources = ORDINARY * (1 + 2 * len(hostile) // len(ORDINARY)) + hostile + list(extra)
    pool.DEFAULT_LIMITS, usual = LIMITS, pool.DEFAULT_LIMITS
    outcomes: Counter[str] = Counter()
    written = curve.open("w", buffering=1, encoding="utf-8") if curve else None
    sys.dont_write_bytecode = True  # of what is imported on the way: these files are not a program's doing
    events = hostile_runner.watch()
    memory = Memory()
    start = time.monotonic()
    if written:
        written.write("programs,resident_bytes,seconds\n")
    sizes = [min(batch, programs - done) for done in range(0, programs, batch)]
    try:
        for mutants in made_ahead(sizes, sources, rng):
            done = outcomes.total()
            outcomes.update(traced(mutants, done))
            assert not events, f"this process was made to act: {events}"
            resident = memory.look(done, outcomes.total())
            seconds = time.monotonic() - start
            if written:
                written.write(f"{outcomes.total()},{resident},{seconds:.0f}\n")
            if show:
                print(f"{outcomes.total()} {dict(outcomes)} {seconds:.0f} s", file=sys.stderr)
            if STOPPED:
                break
    finally:
        pool.DEFAULT_LIMITS = usual
        if written:
            written.close()
    total = outcomes.total()
    rate = round(total / (time.monotonic() - start))
    return {**outcomes, "programs": total, "programs_per_second": rate, "resident": memory.verdict()}


STOPPED: list[int] = []  # signals that came


def stop_on_signals() -> None:
    """End after the batch under way; a second signal ends at once."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)


def _stop(number: int, frame: object) -> None:
    if STOPPED:
        raise KeyboardInterrupt
    STOPPED.append(number)


def made_ahead(sizes: Sequence[int], sources: Sequence[str], rng: random.Random) -> Iterator[list[str]]:
    """Batches of mutants, the next one made while the one before it is traced."""
    with ThreadPoolExecutor(1) as other:

        def begin(size: int) -> Future[list[str]]:
            return other.submit(lambda: [mutant(sources, rng) for _ in range(size)])

        waiting = begin(sizes[0])
        for following in [*sizes[1:], 0]:
            mutants = waiting.result()
            waiting = begin(following)
            yield mutants


class Memory:
    """What this process holds: it may grow until the caches are full, and hardly after that."""

    def __init__(self) -> None:
        self.first = self.settled = self.most = 0

    def look(self, before: int, after: int) -> int:
        """The bytes held now, after so many programs; an AssertionError if they grew too much."""
        resident = hostile_runner.resident_bytes()
        self.first = self.first or resident
        if before <= SETTLED < after:
            self.settled = resident
        self.most = max(self.most, resident)
        base, growth = (self.settled, 64 << 20) if self.settled else (self.first, 400 << 20)
        assert resident - base < growth, f"memory grew from {base} to {resident} bytes"
        return resident

    def verdict(self) -> str:
        megabytes = [f"{size / (1 << 20):.0f} MB" for size in (self.first, self.settled, self.most)]
        if not self.settled:
            return f"not full yet: {megabytes[0]} at first, at most {megabytes[2]}"
        return f"flat: {megabytes[1]} after {SETTLED} programs, at most {megabytes[2]}"


def traced(mutants: list[str], number: int) -> list[str]:
    """The outcomes of a batch, every trace checked, with a canary at its end."""
    *traces, canary = trace_all([*mutants, f"{hostile_runner.CANARY}\nnumber = {number}"])
    assert hostile_runner.is_sound(canary), f"a canary went wrong: {canary}"
    for code, found in zip(mutants, traces, strict=True):
        check(code, found)
    rng = random.Random(number)
    for code in [colliding_hashes(rng) for _ in range(TIMED)]:
        started = time.process_time()
        check(code, trace_all([code])[0])
        seconds = time.process_time() - started
        assert seconds < MOST_SECONDS, f"{seconds:.2f} s for one program: {code!r}"
    for cheat, tests in [cheating_comparison(rng) for _ in range(JUDGED)]:
        assert not passes(cheat, (tests,), python.run_isolated), f"a cheat passes {tests!r}: {cheat!r}"
    again = mutants[number % 50 :: 50]
    for code, first, second in zip(again, traces[number % 50 :: 50], traced_afresh(again), strict=True):
        certain = all(t.failure is None or t.failure.kind in ("error", "forbidden") for t in (first, second))
        assert not certain or first.states == second.states, f"two traces of one program differ: {code!r}"
    return [hostile_runner.outcome(found) for found in traces]


def traced_afresh(codes: list[str]) -> list[Trace]:
    """Traces that do not come from memory, which goes on growing as it would in a long run."""
    memos, python._memos = python._memos, defaultdict(Memo)
    try:
        return trace_all(codes)
    finally:
        python._memos = memos


def check(code: str, found: Trace) -> None:
    assert len(found.states) == len(found.changes) <= len(found.solution), repr(code)
    if found.failure is not None:
        assert found.failure.step == len(found.states), repr(code)
        assert not found.failure.message.startswith(OUR_OWN_MISTAKES), f"{found.failure.message}: {code!r}"
    if "shown_by_attack" in code:
        shown = str(found.variables.get("shown_by_attack", ""))
        assert not any(inside in shown for inside in INSIDES), f"{shown[:100]!r} is shown: {code!r}"
    if "calls_after" in code and found.failure is None:
        before, after = (found.variables.get(f"calls_{when}") for when in ("before", "after"))
        assert before == after, f"the recorder called a method: {code!r}"


def mutant(sources: Sequence[str], rng: random.Random) -> str:
    if rng.randrange(SHARE_OF_ATTACKS) == 0:
        return rng.choice((template, attribute_of_exception, decorated_method, library_by_name))(rng)
    code = rng.choice(sources)
    for _ in range(rng.choice((1, 1, 1, 2))):
        mutate = rng.choices((with_other_tree, with_other_lines, with_other_token, with_noise), (6, 2, 1, 1))[
            0
        ]
        code = mutate(code, sources, rng)
    return code


def template(rng: random.Random) -> str:
    """A text that is formatted; whatever is read on the way is in what comes out or in what is raised."""
    pieces = (
        "{",
        "}",
        "{{",
        "{0",
        "{a",
        "{}",
        "}",
        ".real",
        ".__class__",
        "[0]",
        "[b]",
        "!r",
        ":",
        ":>9",
        "{:{0.real}}",
    )
    spelled = "".join(rng.choice(pieces) for _ in range(rng.randint(1, 4)))
    if rng.randrange(4):
        chain = "".join(
            rng.choice((".__class__", ".__class__", ".__doc__", ".real")) for _ in range(rng.randint(0, 2))
        )
        spelled = f"{{0{chain}{rng.choice(('', '.nope', '.nope'))}}}{spelled}"
    call = rng.choice((*[".format(1, 2, a=[3])"] * 4, " % 1", ".format_map({'a': 1})"))
    text = rng.choice((*[repr(spelled)] * 4, f"f{spelled!r}", f"({spelled!r} + 'x')", "t"))
    caught = rng.choice(("shown_by_attack = str(e.obj)", "shown_by_attack = str(e.args)"))
    return (
        f"t = {spelled!r}\nshown_by_attack = ''\ntry:\n    shown_by_attack = {text}{call}\n"
        f"except Exception as e:\n    {caught}"
    )


def attribute_of_exception(rng: random.Random) -> str:
    """What hangs on an exception, a generator or a function."""
    raising = (
        "1 .nope",
        "missing",
        "[][1]",
        "{}[1]",
        "int('x')",
        "b'\\xff'.decode()",
        "next(iter([]))",
        "1 / 0",
    )
    names = (
        "obj name args value object reason __traceback__ __context__ __dict__ __class__ __cause__ tb_frame"
    )
    further = "gi_frame f_back f_globals gi_code __globals__ __self__ __func__ _evaluate _numerator _convert_"
    path = "".join(f".{rng.choice((names + ' ' + further).split())}" for _ in range(rng.randint(1, 3)))
    what = rng.choice(("e", "g", "e.args[0]", "(lambda: 1)", "e.args"))
    pattern = f"match e:\n        case object({path.split('.')[1]}=y):\n            shown_by_attack = str(y)"
    used = rng.choice((f"shown_by_attack = str({what}{path})", pattern))
    return f"g = (i for i in [1])\ntry:\n    x = {rng.choice(raising)}\nexcept Exception as e:\n    {used}"


def library_by_name(rng: random.Random) -> str:
    """Objects of the library under names of the program's choice, from which copies and patterns are made."""
    names = [
        "__builtins__",
        "__class__",
        "__reduce_ex__",
        "__traceback__",
        "gi_frame",
        "obj",
        "sys",
        "x=open",
        "_name",
        "x",
    ]
    name, other = rng.choice(names), rng.choice(names)
    made = rng.choice(
        (
            "Literal['eval']",
            "List[int]",
            "Callable[[], int]",
            "fields(D)[0]",
            "field()",
            "D(1)",
            "TypeVar('T')",
        )
    )
    setting = rng.choice(
        (f"v._name = {name!r}", f"v.name = {name!r}", f"fields(D)[0].name = {name!r}", "pass")
    )
    using = rng.choice(
        (
            "copy.copy(v)",
            "copy.deepcopy(v)",
            "asdict(D(1))",
            "replace(D(1))",
            "dataclass(type('E', (D,), {}))",
        )
    )
    base = rng.choice(("Hashable", "Iterable", "Fraction", "Exception", "namedtuple('N', 'gi_frame')"))
    return (
        "import copy\nfrom collections import namedtuple\nfrom fractions import Fraction\n"
        "from typing import *\nfrom dataclasses import *\ng = (i for i in 'a')\nshown_by_attack = ''\n"
        f"@dataclass\nclass D:\n    x: int = 0\nclass K({base}):\n    pass\ntry:\n    v = {made}\n"
        f"    {setting}\n    shown_by_attack = str({using})\n    K.register(type(g))\n    match g:\n"
        f"        case K(f):\n            shown_by_attack = str(f)\n"
        f"except Exception as e:\n    shown_by_attack = str(e.args[:0]) + {other!r}[:0]"
    )


def decorated_method(rng: random.Random) -> str:
    """A class whose methods are whatever a decorator makes of them; recording its instances calls none."""
    evil = "".join(
        f"    def __{name}__(self, *a):\n        calls.append(1)\n        return {rng.choice((True, 0))}\n"
        for name in ("eq", "hash", "len", "iter", "call", "bool", "repr", "getitem", "index")
    )
    decorators = (
        *(
            "(lambda f: Evil())",
            "(lambda f: classmethod(property(f)))",
            "property",
            "classmethod",
            "staticmethod",
        ),
        *("(lambda f: None)", "(lambda f: 1)", "functools.cache", "functools.partial", "(lambda f: f)"),
    )
    methods = "".join(
        f"    @{rng.choice(decorators)}\n    def __{name}__(self, *a):\n        calls.append(1)\n"
        for name in (
            "hash",
            *rng.sample(("eq", "len", "iter", "repr", "float", "int", "getitem", "contains"), 2),
        )
    )
    base = rng.choice((*["tuple"] * 4, "int", "list", "dict", "str", "Fraction", "object", "float", "set"))
    fields = rng.choice(
        ("    _fields = ()\n", "    _fields = ()\n", "    _fields = Evil()\n", "    _numerator = Evil\n", "")
    )
    held = rng.choice(("t = T()", "t = [T()]", "t = {1: T()}", "t = (T(), T)", "t = T"))
    return (
        f"import functools\nfrom fractions import Fraction\ncalls = []\nclass Evil:\n{evil}"
        f"class T({base}):\n{fields}{methods}{held}\n"
        "calls_before = len(calls)\ny = t\ncalls_after = len(calls)"
    )


def colliding_hashes(rng: random.Random) -> str:
    """Many values of one hash, under many names."""
    one = rng.choice(
        (
            "k * P",
            "frozenset({k * P})",
            "(k * P, 1)",
            "Fraction(1, 3) + k * P",
            "Decimal(k * P)",
            "str(k)",
            "k << 40",
        )
    )
    size = rng.choice((50, 300, 700, 1000, 1380))
    made = rng.choice((f"{{{one} for k in range({size})}}", f"{{{one}: 1 for k in range({size})}}"))
    names = "".join(f"a{n} = {rng.choice(('s', '[s]', '(s, s)'))}\n" for n in range(rng.randint(0, 15)))
    return (
        f"from fractions import Fraction\nfrom decimal import Decimal\nP = 2 ** 61 - 1\ns = {made}\n{names}"
    )


def cheating_comparison(rng: random.Random) -> tuple[str, str]:
    """A program that knows no answer but compares in its own way, and tests that it must not pass."""
    truths = rng.sample(("eq", "lt", "gt", "le", "ge", "contains", "bool", "ne", "hash", "len", "index"), 6)
    selves = rng.sample(
        ("sub", "rsub", "add", "abs", "round", "iter", "next", "getitem", "call", "neg", "int"), 6
    )
    lies = "".join(
        f"    def __{name}__(self, *a):\n        return {'True' if name in truths else 'self'}\n"
        for name in (*truths, *selves)
    )
    base = rng.choice(
        ("", "(int)", "(float)", "(str)", "(list)", "(tuple)", "(dict)", "(set)", "(Exception)")
    )
    name = rng.choice(("Any", "int", "range", "generator", "Fraction", "Object", "Unknown", "list_iterator"))
    if name == "int" and base == "(int)":
        base = ""
    others = rng.sample(
        ("abs", "set", "sorted", "all", "any", "isinstance", "str", "list", "map", "math", "round"), 3
    )
    rebound = "".join(
        f"{other} = {rng.choice(('lambda *a, **k: True', f'{name}()', name))}\n" for other in others
    )
    given = rng.choice(
        (f"{name}()", name, f"[{name}()]", "NotImplemented", "f", "iter([a])", "0", "True", "None")
    )
    ends = rng.choice(
        (f"return {given}", f"return {given}", "raise StopIteration", "raise SystemExit", f"yield {given}")
    )
    wanted = rng.randint(10**6, 10**9)
    forms = (
        *("assert f({n}) == {w}", "assert abs(f({n}) - {w}) < 1e-6", "assert math.isclose(f({n}), {w})"),
        *(
            "assert f({n}) in ({w},)",
            "assert set([f({n})]) == {{{w}}}",
            "assert all(f(k) == {w} for k in [{n}])",
        ),
        *(
            "assert {w} - 1 < f({n}) < {w} + 1",
            "assert not f({n}) != {w}",
            "assert list(map(f, [{n}])) == [{w}]",
        ),
        *(
            "def check(g):\n    assert g({n}) == {w}\ncheck(f)",
            "assert str(f({n})) == '{w}'",
            "assert f(f({n})) == {w}",
        ),
        *(
            "assert round(f({n})) == {w}",
            "assert sorted([f({n})]) == [{w}]",
            "assert all(map(lambda k: f(k) == {w}, [{n}]))",
        ),
    )
    tests = rng.choice(forms).format(n=rng.randint(0, 9), w=wanted)
    return f"class {name}{base}:\n{lies}{rebound}def f(a):\n    {ends}", tests


def with_noise(code: str, sources: Sequence[str], rng: random.Random) -> str:
    place = rng.randrange(len(code) + 1)
    return code[:place] + rng.choice(SPICE) + code[place + rng.choice((0, 0, 1, 5)) :]


def with_other_lines(code: str, sources: Sequence[str], rng: random.Random) -> str:
    mine, theirs = code.split("\n"), rng.choice(sources).split("\n")
    cut, start = rng.randrange(len(mine) + 1), rng.randrange(len(theirs))
    return "\n".join(
        mine[:cut] + theirs[start : start + rng.randint(1, 4)] + mine[cut + rng.choice((0, 1)) :]
    )


def with_other_token(code: str, sources: Sequence[str], rng: random.Random) -> str:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError, IndexError):
        return with_noise(code, sources, rng)
    chosen = rng.choice(tokens)
    lines = code.split("\n")
    row, (start, end) = chosen.start[0] - 1, (chosen.start[1], chosen.end[1])
    if chosen.start[0] != chosen.end[0] or row >= len(lines):
        return with_noise(code, sources, rng)
    lines[row] = f"{lines[row][:start]} {rng.choice(SPICE)} {lines[row][end:]}"
    return "\n".join(lines)


def with_other_tree(code: str, sources: Sequence[str], rng: random.Random) -> str:
    """An expression or a statement exchanged for one of another program."""
    kind = rng.choice((ast.expr, ast.expr, ast.stmt))
    try:
        mine, places = places_of(code, kind)
        gifts = gifts_of(rng.choice(sources), kind)
        if not gifts or not places:
            return with_noise(code, sources, rng)
        node, name, index = rng.choice(places)
        return with_gift(mine, node, name, index, rng.choice(gifts))
    except (SyntaxError, ValueError, RecursionError):
        return with_noise(code, sources, rng)


@lru_cache(maxsize=1_000)  # the sources come again and again
def places_of(code: str, kind: type) -> tuple[ast.Module, list[tuple[ast.AST, str, int]]]:
    """A tree, and where in it something of this kind hangs."""
    tree = ast.parse(code)
    return tree, [
        (node, name, index)
        for node in ast.walk(tree)
        for name, value in ast.iter_fields(node)
        for index, item in enumerate(value if isinstance(value, list) else [value])
        if is_movable(item, kind)
    ]


@lru_cache(maxsize=1_000)
def gifts_of(code: str, kind: type) -> list[ast.AST]:
    """What of this kind may hang elsewhere; of a tree of its own, so that no gift comes to hang in itself."""
    return [node for node in ast.walk(ast.parse(code)) if is_movable(node, kind)]


def with_gift(tree: ast.Module, node: ast.AST, name: str, index: int, gift: ast.AST) -> str:
    """The text of the tree with the gift in this place; the tree itself stays as it was."""
    before = getattr(node, name)
    setattr(node, name, [*before[:index], gift, *before[index + 1 :]] if isinstance(before, list) else gift)
    try:
        return ast.unparse(tree)
    finally:
        setattr(node, name, before)


def is_movable(node: object, kind: type) -> bool:
    bound_to_their_place = (ast.Starred, ast.Slice, ast.FormattedValue)
    is_read = isinstance(getattr(node, "ctx", None), (ast.Load, type(None)))
    return isinstance(node, kind) and is_read and not isinstance(node, bound_to_their_place)


if __name__ == "__main__":
    main()
