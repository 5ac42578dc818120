"""`python -m benchmarks buffer`: many problems' buffers in memory, considered, saved and loaded."""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import click

from benchmarks.tables import COUNT, print_table
from partway.buffer import Rules, SolutionBuffer, write_buffers
from partway.execution import trace, tracing
from partway.problem import Problem

SOLUTIONS = 5
STEPS = 8
LIVE_SOLUTIONS = 20
LIVE_PROBLEMS = 100


@click.command()
@click.option("--problems", type=COUNT, default=20_000, show_default=True, help="How many buffers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(problems: int, as_json: bool) -> None:
    """Buffers of five solutions with eight steps: memory, time to consider, to save and to load.

    \b
    Examples:
      python -m benchmarks buffer
      python -m benchmarks buffer --problems 100000 --json
    """
    before = memory()
    buffers, microseconds = fill(problems)
    used = memory() - before
    given = {id: Problem(id, "", buffer.answer) for id, buffer in buffers.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "buffer.jsonl")
        started = time.perf_counter()
        with path.open("w", encoding="utf-8") as stream:
            write_buffers(stream, buffers)
        saved = time.perf_counter()
        restored = {}
        with path.open(encoding="utf-8") as stream:
            for row in map(json.loads, stream):
                restored[row["id"]] = SolutionBuffer.from_json(given[row["id"]], row)
        loaded = time.perf_counter()
    live, live_new = live_consider()
    result = {
        "problems": problems,
        "solutions_per_problem": sum(map(len, buffers.values())) / problems,
        "megabytes": round(used, 1),
        "consider_microseconds": round(microseconds, 1),
        "live_consider_microseconds": round(live, 1),
        "live_keep_microseconds": round(live_new, 1),
        "save_seconds": round(saved - started, 2),
        "load_seconds": round(loaded - saved, 2),
    }
    if as_json:
        click.echo(json.dumps(result))
        return
    print_table(
        f"buffers of {problems:,} problems", ["", "measured"], [(k, str(v)) for k, v in result.items()]
    )


def memory() -> float:
    """The most memory this process has held, in megabytes."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def fill(problems: int) -> tuple[dict[str, SolutionBuffer], float]:
    """Buffers with five solutions each, and the mean time one `consider` took, in microseconds."""
    rng = random.Random(0)
    buffers: dict[str, SolutionBuffer] = {}
    seconds, considered = 0.0, 0
    for index in range(problems):
        problem, samples = problem_with_samples(index, rng)
        buffer = buffers[problem.id] = SolutionBuffer.seeded(problem)
        for sample in samples:
            traced = trace(sample)  # not timed: `consider` alone is measured
            started = time.perf_counter()
            buffer.consider(traced)
            seconds += time.perf_counter() - started
            considered += 1
            if len(buffer) == SOLUTIONS:
                break
        if index % 1000 == 0:
            tracing.forget()  # remembered traces would count as memory of the buffers
    return buffers, seconds / considered * 1e6


def live_consider() -> tuple[float, float]:
    """How long `consider` takes under `equivalence: live` with twenty solutions kept, in microseconds.

    Samples are right beginnings with a wrong end, known ones and new ones. The first figure is the median of
    all, the second of those that keep a new beginning, for which the completion is run, confirmed and made a
    way for others. The samples' own traces are not counted.
    """
    rng = random.Random(0)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for index in range(LIVE_PROBLEMS):
        problem, samples = problem_with_samples(index, rng, 4 * LIVE_SOLUTIONS)
        buffer = SolutionBuffer.seeded(problem, Rules(equivalence="live"))
        for sample in samples:
            if len(buffer.fully_correct) < LIVE_SOLUTIONS:
                buffer.consider(trace(sample))
                continue
            wrong = trace(sample.replace("answer = t2 * 2", "t3 = 7\nanswer = t3 - t2"))
            started = time.perf_counter()
            verdict = buffer.consider(wrong)
            seconds[verdict.is_new].append(time.perf_counter() - started)
    return median(seconds[False] + seconds[True]) * 1e6, median(seconds[True]) * 1e6


def problem_with_samples(
    index: int, rng: random.Random, count: int = 2 * SOLUTIONS
) -> tuple[Problem, list[str]]:
    """A sum of numbers that are the problem's own, and solutions that add them in another order."""
    numbers = [rng.randrange(2, 1000) for _ in range(STEPS // 2)]
    samples = []
    for _ in range(count):
        order = rng.sample(range(len(numbers)), len(numbers))
        lines = [f"n{i} = {numbers[i]}" for i in order]
        a, b, c, d = order
        lines += [f"t0 = n{a} + n{b}", f"t1 = t0 + n{c}", f"t2 = t1 + n{d}", "answer = t2 * 2"]
        samples.append("\n".join(lines))
    return Problem(f"problem-{index}", "", 2 * sum(numbers), samples[0]), samples[1:]
