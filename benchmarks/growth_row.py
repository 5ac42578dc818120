"""One row of `python -m benchmarks growth`: a real training of a few steps, in this process alone."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from random import Random
from typing import Any

from transformers import TrainerCallback

from benchmarks.buffer import memory
from benchmarks.growth import Setting
from benchmarks.roof import random_llama
from partway.language import trace_all
from partway.problem import Problem
from partway.solution import Solution
from partway.training import SelfSamplingConfig, SelfSamplingTrainer

SHAPES = {"1M": (128, 4, 1_095), "10M": (320, 8, 4_096), "135M": (576, 30, 49_152)}
CONTEXT = 512
NUMBERS = 6  # of a problem: 720 orders to write them in
DRAWN = 48  # tokens of every sample


class Watch(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """When each step began and ended."""

    def __init__(self) -> None:
        self.begun: list[float] = []
        self.ended: list[float] = []

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.begun.append(time.perf_counter())

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.ended.append(time.perf_counter())


def problem(number: int) -> Problem:
    """A sum of numbers of its own; its solutions write them down in any order."""
    values = Random(number).sample(range(2, 1_000), NUMBERS)
    question = f"Add {', '.join(map(str, values))}."
    return Problem(str(number), question, sum(values), solution(values, list(range(NUMBERS))))


def solution(values: list[int], order: list[int]) -> Solution:
    """The values in that order, then their sum."""
    lines = [f"n{place} = {values[place]}" for place in order]
    return Solution((*lines, f"answer = {' + '.join(f'n{place}' for place in range(NUMBERS))}"))


def other_solutions(given: Problem, count: int) -> Iterator[Solution]:
    """`count` different ones, none of them the reference."""
    rng, seen = Random(given.id), {given.reference}
    values = Random(int(given.id)).sample(range(2, 1_000), NUMBERS)
    while len(seen) <= count:
        other = solution(values, rng.sample(range(NUMBERS), NUMBERS))
        if other not in seen:
            seen.add(other)
            yield other


def fill(trainer: SelfSamplingTrainer, solutions: int) -> None:
    """Have so many solutions kept of each problem."""
    for given in trainer.train_dataset:
        for found in trace_all([one.text for one in other_solutions(given, solutions - 1)]):
            trainer.buffers[given.id].consider(found)


def measure(setting: Setting, directory: str) -> dict[str, Any]:
    """Medians of the steps after the first; memory and the time until the first step."""
    problems = [problem(number) for number in range(setting.problems)]
    model = random_llama(*SHAPES[setting.size], CONTEXT)
    watch, started = Watch(), time.perf_counter()
    args = SelfSamplingConfig(
        preset="paper",
        output_dir=directory,
        max_steps=setting.steps,
        per_device_train_batch_size=setting.batch // setting.processes,
        num_generations=setting.samples,
        max_completion_length=DRAWN,
        save_steps=setting.steps,
        eval_strategy="no",
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,
    )
    trainer = SelfSamplingTrainer(model, args, problems, callbacks=[watch])
    if setting.solutions > 1:
        fill(trainer, setting.solutions)
    trainer.train()
    steps = [end - begin for begin, end in zip(watch.begun[1:], watch.ended[1:], strict=True)]
    times = trainer.run.timings()[1 : setting.steps]
    tokens = max(line.get("num_tokens", 0) for line in trainer.run.metrics())
    return {
        "seconds": statistics.median(steps),
        "exploring": statistics.median(line["time/exploring"] for line in times),
        "learning": statistics.median(line["time/learning"] for line in times),
        "start_seconds": watch.begun[0] - started,
        "megabytes": memory(),
        "tokens_learned": tokens // setting.steps,
    }


def main() -> None:
    setting = Setting(**json.loads(sys.argv[1]))
    with tempfile.TemporaryDirectory() as directory:
        print(json.dumps(measure(setting, directory)))


if __name__ == "__main__":
    main()
