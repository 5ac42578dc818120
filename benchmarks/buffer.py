"""`python -m benchmarks buffer`: many problems' buffers in memory, considered, saved and loaded."""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

import click

from benchmarks.tables import COUNT, print_table
from partway.buffer import SolutionBuffer, write_buffers
from partway.language import python, trace
from partway.problem import Problem

SOLUTIONS = 5
STEPS = 8


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
            write_buffers(stream, buffers.values())
        saved = time.perf_counter()
        restored = {}
        with path.open(encoding="utf-8") as stream:
            for row in map(json.loads, stream):
                restored[row["id"]] = SolutionBuffer.from_json(given[row["id"]], row)
        loaded = time.perf_counter()
    result = {
        "problems": problems,
        "solutions_per_problem": sum(map(len, buffers.values())) / problems,
        "megabytes": round(used, 1),
        "consider_microseconds": round(microseconds, 1),
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
            python.forget()  # remembered traces would count as memory of the buffers
    return buffers, seconds / considered * 1e6


def problem_with_samples(index: int, rng: random.Random) -> tuple[Problem, list[str]]:
    """A sum of numbers that are the problem's own, and solutions that add them in another order."""
    numbers = [rng.randrange(2, 1000) for _ in range(STEPS // 2)]
    samples = []
    for _ in range(2 * SOLUTIONS):
        order = rng.sample(range(len(numbers)), len(numbers))
        lines = [f"n{i} = {numbers[i]}" for i in order]
        a, b, c, d = order
        lines += [f"t0 = n{a} + n{b}", f"t1 = t0 + n{c}", f"t2 = t1 + n{d}", "answer = t2 * 2"]
        samples.append("\n".join(lines))
    return Problem(f"problem-{index}", "", 2 * sum(numbers), samples[0]), samples[1:]
