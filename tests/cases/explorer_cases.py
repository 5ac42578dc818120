"""Run directories for the explorer, written without training: every verdict, every kind of file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from partway.buffer import Rules, SolutionBuffer, seed_buffers, write_buffers
from partway.evaluation import Evaluation, EvaluationPlan
from partway.evaluation.samples import ProblemResult, judge, whole
from partway.files import atomic_writer
from partway.language import trace
from partway.problem import Problem
from partway.runs import Run
from partway.runs.checkpoints import seal
from partway.sample import Sample

WHEELS = Problem(
    "wheels",
    "Oil: 10 ml for each of 2 wheels and 5 ml for the chain. How much?",
    25,
    "n0 = 10\nn1 = 2\nn2 = 5\nt0 = n0 * n1\nanswer = t0 + n2",
)
PENS = Problem("pens", "Ann buys 3 boxes of 4 pens. How many pens?", 12, "n0 = 3\nn1 = 4\nanswer = n0 * n1")
WEAK = Problem("weak", "What is 3 + 4?", 7)
TRAIN = (WHEELS, PENS, WEAK)
DEV = (
    Problem("eggs", "Tom eats 2 of 6 eggs. How many are left?", 4, "n0 = 6\nn1 = 2\nanswer = n0 - n1"),
    Problem("cats", "There are 5 cats, 2 leave. How many stay?", 3, "n0 = 5\nn1 = 2\nanswer = n0 - n1"),
)

SWAPPED = "n0 = 10\nn1 = 2\nn2 = 5\nt0 = n1 * n0\nanswer = n2 + t0\n"
OTHER_WAY = "n1 = 2\nn0 = 10\nt0 = n0 * n1\nanswer = t0 - n1\n"
SAMPLES = (
    (1, "wheels", "", SWAPPED, -1.5),
    (2, "wheels", "", OTHER_WAY, -2.0),
    (2, "wheels", "", "n0 = 11\nanswer = n0\n", -4.0),
    (3, "wheels", "", "n0 = = 1\n", -9.0),
    (3, "pens", "", "n0 = 3\nn1 = 4\nanswer = n1 * n0\n", None),
    (4, "wheels", "", SWAPPED, -0.5),
    (4, "weak", "", "answer = 3 + 4\n", -0.25),
)
EVALUATED = {
    "eggs": [
        ("n0 = 6\nn1 = 2\nanswer = n0 - n1\n", 3),
        ("n0 = 6\nn1=2\nanswer = (n0 - n1)", 2),
        ("n0 = 6\nanswer = n0", 1),
    ],
    "cats": [("n0 = 5\nanswer = n0 / 0\n", 4), ("answer = (", 2)],
}


@dataclass
class Writer:
    """A run that trains by script: `sample` considers and records, `save` writes what a checkpoint has."""

    directory: Path
    train: Sequence[Problem] = TRAIN
    dev: Sequence[Problem] = DEV
    config: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.run = Run(self.directory)
        self.run.write_config(
            {"self_sampling": "fcs+pcs", "objective": "mle_aug", "max_steps": 100, **self.config}
        )
        self.run.write_problems("train", self.train)
        self.run.write_problems("dev", self.dev)
        self.buffers: dict[str, SolutionBuffer] = seed_buffers(self.train, Rules())

    def sample(self, samples: Iterable[tuple[int, str, str, str, float | None]] = SAMPLES) -> None:
        """Consider samples and write them down: step, problem, prefix, completion, log-probability."""
        for step, problem, prefix, completion, log_prob in samples:
            text = f"{prefix}\n{completion}" if prefix else completion
            verdict = self.buffers[problem].consider(trace(text), step)
            self.run.append_samples(
                [Sample(problem, prefix, completion, 1, True, log_prob=log_prob, step=step, verdict=verdict)]
            )
            self.run.append_metrics({"step": step}, {"step": step})

    def save(self, name: str) -> None:
        """The buffers, as a checkpoint or the end has them."""
        with atomic_writer(self.directory / name / "buffer.jsonl") as stream:
            write_buffers(stream, self.buffers.values())
        seal(self.directory / name)

    def evaluate(self, step: int, drawn: dict[str, list[tuple[str, int]]] = EVALUATED) -> None:
        """An evaluation that drew these completions."""
        results = []
        for problem in self.dev:
            judged = [
                judge(problem, whole(problem.id, text, count), trace(text))
                for text, count in drawn[problem.id]
            ]
            pass1 = judge(problem, whole(problem.id, drawn[problem.id][0][0]), trace(drawn[problem.id][0][0]))
            results.append(ProblemResult(problem.id, tuple(judged), (pass1,)))
        plan = EvaluationPlan(samples=6, ks=(1, 6))
        self.run.write_evaluation(step, Evaluation.of(tuple(results), plan))


def finished_run(directory: Path) -> Run:
    """A run with kept solutions, samples and an evaluation."""
    writer = Writer(directory)
    writer.sample()
    writer.evaluate(4)
    writer.save("final")
    return writer.run


def write_large_run(directory: Path, problems: int) -> Run:
    """A run of many problems, written quickly: one to four solutions each, every third with a partial one."""
    run = Run(directory)
    run.write_config({"self_sampling": "fcs+pcs", "max_steps": 100})
    for folder in ("problems", "final"):
        (directory / folder).mkdir()
    with (directory / "problems" / "train.jsonl").open("w") as listed:
        listed.writelines(json.dumps(_large_problem(number)) + "\n" for number in range(problems))
    with (directory / "final" / "buffer.jsonl").open("w") as kept:
        kept.writelines(json.dumps(_large_buffer(number)) + "\n" for number in range(problems))
    return run


def _large_problem(number: int) -> dict[str, Any]:
    word = "".join(chr(ord("a") + number // 7**place % 26) for place in range(5))
    question = f"Box {number} holds {number % 89} apples, {number % 97} pens and a {word}. How many things?"
    return {"id": f"p-{number}", "question": question, "answer": number, "solution": f"answer = {number}"}


def _large_buffer(number: int) -> dict[str, Any]:
    state = str(number)
    solutions: list[dict[str, Any]] = [
        {
            "kind": "fully_correct",
            "steps": [f"n{i} = {number}", "answer = n0"],
            "states": [state, state],
            "found": i,
        }
        for i in range(1 + number % 4)
    ]
    if number % 3 == 0:
        solutions.append({"kind": "partially_correct", "steps": ["y = 1"], "states": ["1"], "found": 9})
    return {"id": f"p-{number}", "rules": asdict(Rules()), "max_length": 3, "solutions": solutions}
