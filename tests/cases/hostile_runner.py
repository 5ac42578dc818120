"""Run a corpus of hostile programs through `trace` and write down what happened to everything else.

    python tests/cases/hostile_runner.py CORPUS.jsonl [--quick]

`--quick` sends all programs in one call.

A program may come with a `victim`, which must trace the same behind it as alone, and with its `answer`.

Prints one JSON object: outcomes by id, canaries and victims that went wrong, wrong answers, what this process
did to files, sockets and processes meanwhile (as audit events), growth of its memory, processor time it spent
on a single program, processes left, seconds.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

from partway import Trace, trace
from partway.language import is_correct, trace_all
from partway.language.python import forget
from stepbox import pool

CANARY = """
import math, statistics, decimal
from fractions import Fraction
from collections import Counter
a = [math.pi, math.floor(1.5), math.sqrt(4), statistics.mean([1, 2, 6]), str(decimal.Decimal(1) / 3)]
b = [str(Fraction(1, 3).limit_denominator()), isinstance('a', Fraction), Counter('aab').most_common(1)]
c = [abs(-3), len([1]), sum([1, 2]), int('7'), statistics.NormalDist().samples(1, seed=1) != [0]]
answer = sum(range(10))
"""
VARIABLES = {
    "a": [3.141592653589793, 1, 2.0, 3, "0.3333333333333333333333333333"],
    "b": ["1/3", False, [("a", 2)]],
    "c": [3, 1, 3, 7, True],
    "answer": 45,
}
# Less than usual, since most of these programs take all they get; honest ones among them need far less.
LIMITS = pool.Limits(cpu_seconds=0.45, memory_bytes=128 << 20)
CHANGING = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.chown")


def main(corpus: Path, quick: bool) -> dict:
    programs = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    codes = [program["code"].replace("SCRATCH", os.getcwd()) for program in programs]
    pool.DEFAULT_LIMITS = LIMITS
    trace(CANARY)
    events = watch()
    memory, start = resident_bytes(), time.monotonic()
    spent: list[float] = [0.0]
    traces = run_together(codes) if quick else [one for code in codes for one in run_alone(code, spent)]
    seconds = time.monotonic() - start
    growth = resident_bytes() - memory
    broken = [p["id"] for p in programs if "victim" in p and not is_unharmed(p)]
    pids = {worker.process.pid for worker in pool._SHARED.get().workers}
    pool._SHARED.get().close(patience=5.0)
    hostile, canaries = traces[::2], traces[1::2]
    return {
        "outcomes": {program["id"]: outcome(found) for program, found in zip(programs, hostile, strict=True)},
        "messages": {
            p["id"]: str(t.failure and t.failure.message) for p, t in zip(programs, hostile, strict=True)
        },
        "broken_victims": broken,
        "wrong_answers": [
            p["id"]
            for p, t in zip(programs, hostile, strict=True)
            if "answer" in p and not is_correct(t.answer, p["answer"])
        ],
        "most_seconds_here": max(spent),
        "broken_canaries": [p["id"] for p, t in zip(programs, canaries, strict=True) if not is_sound(t)],
        "events": events,
        "growth": growth,
        "processes_left": sorted(pids & living_sessions()),
        "seconds": seconds,
    }


def run_alone(code: str, spent: list[float]) -> list[Trace]:
    """The program, whose processor time here is noted, then a canary that cannot be answered from memory."""
    start = time.process_time()
    found = trace(code)
    spent.append(time.process_time() - start)
    forget()
    return [found, trace(CANARY)]


def is_unharmed(program: dict) -> bool:
    """Whether the victim traces the same alone, before and behind the program."""
    forget()
    alone = trace(program["victim"])
    forget()
    before, _, behind = trace_all([program["victim"] + "\n", program["code"], program["victim"]])
    same = (alone.states, alone.failure, alone.changes)
    return all((one.states, one.failure, one.changes) == same for one in (before, behind))


def run_together(codes: list[str]) -> list[Trace]:
    """All programs in one call, a canary of its own behind each."""
    return trace_all([text for n, code in enumerate(codes) for text in (code, f"{CANARY}\nn = {n}")])


def outcome(found: Trace) -> str:
    return "ok" if found.failure is None else found.failure.kind


def is_sound(canary: Trace) -> bool:
    return canary.failure is None and canary.variables == VARIABLES


def watch() -> list[str]:
    """A growing list of what this process does to files, sockets and processes from now on."""
    events: list[str] = []

    def hook(event: str, arguments: tuple) -> None:
        writes = (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
        internet = event == "socket.__new__" and arguments[1] not in (1, -1)  # AF_UNIX, or an inherited one
        starts = event in (
            "os.fork",
            "os.system",
            "os.exec",
            "os.posix_spawn",
            "socket.connect",
            "ctypes.dlopen",
        )
        if (writes and arguments[0] != os.devnull) or internet or starts or event in CHANGING:
            events.append(f"{event} {arguments}")

    sys.addaudithook(hook)
    return events


def resident_bytes() -> int:
    if Path("/proc/self/statm").exists():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def living_sessions() -> set[int]:
    """Sessions of all living processes; each worker leads one, and its children are in it."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session, *_ = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            found.add(int(session))
    return found


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), "--quick" in sys.argv)))
