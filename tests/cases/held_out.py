"""Three checks that are too long for the suite: against CPython, with forged replies, with killed runs.

    python tests/cases/held_out.py arithmetic --count 330000 --seed 1
    python tests/cases/held_out.py replies --count 150000
    python tests/cases/held_out.py kills --count 65

The first difference, crash or lost bit ends it with an AssertionError that shows the case.
"""

import argparse
import json
import random
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import cpython_twin

from stepbox.results import read_reply
from straightline import NotCovered, parse
from straightline.interpreter import interpret

BINARY = ("+", "+", "-", "-", "*", "*", "/", "/", "//", "%")
CALLS = ("abs({})", "round({}, 2)", "round({})", "int({})", "float({})", "min({}, {})", "max({}, {})")
CALLS += ("math.sqrt({})", "math.floor({})", "math.ceil({})", "math.gcd({}, {})", "sum([{}, {}])", "-({})")
NUMBERS = (
    "0",
    "1",
    "2",
    "3",
    "7",
    "10",
    "12",
    "100",
    "0.5",
    "1.25",
    "0.1",
    "3.0",
    "1e3",
    "1e-7",
    "-4",
    "True",
)


def expression(rng: random.Random, names: list[str], depth: int = 0) -> str:
    """Random arithmetic over known names, deeper now and then."""
    kind = rng.random()
    if depth > 2 or kind < 0.35:
        return rng.choice(names) if names and rng.random() < 0.6 else rng.choice(NUMBERS)
    if kind < 0.8:
        left, right = (expression(rng, names, depth + 1) for _ in "ab")
        return f"({left} {rng.choice(BINARY)} {right})"
    if kind < 0.85:
        return f"{rng.choice(names or ['3'])} ** {rng.choice(('2', '3', '0.5', '-1'))}"
    call = rng.choice(CALLS)
    return call.format(*(expression(rng, names, depth + 1) for _ in range(call.count("{}"))))


def program(rng: random.Random) -> str:
    """A few assignments, the last one of the answer."""
    names: list[str] = []
    lines = ["import math"]
    for number in range(rng.randint(1, 6)):
        lines.append(f"n{number} = {expression(rng, names)}")
        names.append(f"n{number}")
        if rng.random() < 0.1:
            lines.append(f"{rng.choice(names)} {rng.choice('+-*')}= {expression(rng, names)}")
    return "\n".join([*lines, f"answer = {expression(rng, names)}"])


def check_arithmetic(rng: random.Random) -> str:
    """The interpreter against CPython, value for value."""
    text = program(rng)
    try:
        seen = interpret(parse(text, "answer").statements)
    except NotCovered:
        return "left to the workers"
    if seen.failure is not None and seen.failure.kind == "memory":
        return "too large"
    expected = cpython_twin.run(text)
    assert len(seen.changes) == len(expected["states"]), text
    variables: dict[str, object] = {}
    for changed, values in zip(seen.changes, expected["states"], strict=True):
        variables |= {name: value[0] for name, value in changed.items() if value is not None}
        assert {name: [type(v).__name__, repr(v)] for name, v in variables.items()} == values, text
    failed = None if seen.failure is None else (seen.failure.step, seen.failure.message.split(":")[0])
    assert failed == (None if expected["error"] is None else (expected["step"], expected["error"])), text
    return "equal" if failed is None else "fails alike"


WORDS = [b'{"x":1}', b"[]", b"[{},[]]", b'[{"x":1},[]]', b'[{"answer":2},["x"]]', b"null", b"NaN", b"1e999"]
WORDS += [b'["error","boom"]', b'["timeout","\\ud800"]', b'{"q":[1,0]}', b'{"m":"1E+9999"}', b'{"s":[[],{}]}']
WORDS += [
    b'{"t":' * 40,
    b"[" * 300,
    b"9" * 5000,
    b"\n",
    b"\n",
    b"\n",
    b"\xff",
    b"\x00",
    b'"',
    b",",
    b"}",
    b"]",
]


def check_reply(rng: random.Random) -> str:
    """What no worker would send is a failure, never an exception, and takes no time."""
    sound = b'[{"x":1},[]]\n' * rng.randint(0, 5) + b"null"
    record = sound if rng.random() < 0.3 else b"".join(rng.choices(WORDS, k=rng.randint(0, 9)))
    for _ in range(rng.choice((0, 0, 1, 3))):
        place = rng.randrange(len(record) + 1)
        record = record[:place] + bytes([rng.randrange(256)]) + record[place + rng.choice((0, 1)) :]
    ending = rng.choice([b"null", b"null", b'["memory","x"]', *WORDS])
    started = time.process_time()
    length = rng.choice((max(1, record.count(b"\n")), rng.randint(1, 6)))
    found = read_reply(record, ending, length, "answer")
    assert time.process_time() - started < 0.5, (record, ending)
    assert found.failure is None or found.failure.step >= len(found.changes) or not found.changes, record
    return "believed" if found.failure is None else found.failure.kind


def check_kills(count: int, seed: int) -> Counter[str]:
    """Runs killed at random file operations and resumed end as one that was never killed, bit for bit."""
    from zygote import Zygote

    from end_to_end.test_resume import assert_same

    rng, outcomes, zygote = random.Random(seed), Counter[str](), Zygote()
    with tempfile.TemporaryDirectory() as folder:
        expected = Path(folder, "expected")
        (whole,) = zygote.train(expected)
        for number in range(count):  # until so many lives were ended
            directory, resume = Path(folder, f"run-{number}"), False
            while outcomes["killed"] < count:
                (life,) = zygote.train(
                    directory, kill_at=rng.randint(1, whole.file_operations), resume=resume
                )
                resume = True
                if life.status == 0:
                    break
                assert life.status == -9, life
                outcomes["killed"] += 1
            else:
                assert zygote.train(directory, resume=True)[0].status == 0
            assert_same(directory, expected)
            outcomes["ended the same"] += 1
            if outcomes["killed"] >= count:
                break
    zygote.process.terminate()
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description="Checks that are too long for the suite.")
    parser.add_argument("check", choices=("arithmetic", "replies", "kills"))
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.check == "kills":
        outcomes = check_kills(options.count, options.seed)
    else:
        check = {"arithmetic": check_arithmetic, "replies": check_reply}[options.check]
        rng = random.Random(options.seed)
        outcomes = Counter(check(rng) for _ in range(options.count))
    print(json.dumps({"check": options.check, "count": options.count, "seed": options.seed, **outcomes}))


if __name__ == "__main__":
    main()
