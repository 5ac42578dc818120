"""Run directories made without a model: real buffers, traces and evaluations of scripted samples."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from partway.buffer import Rules, SolutionBuffer, Verdict, seed_buffers, write_buffers
from partway.evaluation import Evaluation, EvaluationPlan, ProblemResult
from partway.evaluation.samples import judge, whole
from partway.language import trace
from partway.models.engine import SamplingSettings
from partway.problem import Problem
from partway.runs import Run
from partway.runs.checkpoints import seal
from partway.sample import Sample

PLAN = EvaluationPlan(samples=6, settings=SamplingSettings(), ks=(1, 2, 6), seed=0)
SPANS = ("exploring", "executing", "learning", "evaluating", "saving", "other")


def leave_unpainted(patch: pytest.MonkeyPatch) -> None:
    """Figures are laid out but not painted, which takes most of the time of a report."""
    patch.setattr("runreports.writing._save_png", lambda figure, path: path.touch())
    patch.setattr("runreports.writing._svg", lambda figure: "<svg></svg>")


def apples(count: int, seed: int = 0) -> list[Problem]:
    """Problems with one obvious solution and a few others."""
    rng = random.Random(seed)
    numbers = [[rng.randrange(2, 20) for _ in range(3)] for _ in range(count)]
    return [
        Problem(
            f"apples-{seed}-{index}",
            f"Tom has {a} apples,  buys {b} more\nand eats {c}. How many are left?",
            a + b - c,
            f"n0 = {a}\nn1 = {b}\nn2 = {c}\nt0 = n0 + n1\nanswer = t0 - n2",
        )
        for index, (a, b, c) in enumerate(numbers)
    ]


def written(problem: Problem, rng: random.Random) -> str:
    """What a model might write: right, right at first, or wrong."""
    assert problem.reference is not None
    steps = list(problem.reference.steps)
    if rng.random() < 0.4:
        steps[3] = "t0 = n1 + n0"
    if rng.random() < 0.3:
        steps[0], steps[1] = steps[1], steps[0]
    if rng.random() < 0.5:
        steps[4] = rng.choice(["answer = t0 + n2", "answer = 1 / 0", "answer = t0 -", "x = t0 - n2"])
    if rng.random() < 0.1:
        steps[0] = "n0 ="
    return "".join(f"{step}\n" for step in steps)


def write_run(
    directory: Path,
    *,
    seed: int = 0,
    self_sampling: str = "fcs+pcs",
    objective: str = "mle_aug",
    problems: int = 6,
    steps: int = 40,
    finished: bool = True,
    tested: bool = False,
    **settings: Any,
) -> Run:
    """A run of `steps` steps that logs every 10 and evaluates every 20."""
    run, rng = Run(directory), random.Random(f"{seed}/{self_sampling}/{objective}")
    train, dev = apples(problems, seed), apples(5, 99)
    own = {"self_sampling": self_sampling, "objective": objective, "seed": seed, "output_dir": str(directory)}
    run.write_config({**own, "max_steps": 40, "learning_rate": 1e-3, "train_file": "train.jsonl", **settings})
    run.write_environment(
        {
            "device": "cpu",
            "started": "2026-01-01T00:00:00+00:00",
            "seed": seed,
            "data": {"train": {"problems": problems}, "dev": {"problems": 5}},
            "model": {"name": "tiny", "parameters": 1234},
        }
    )
    run.write_problems("train", train)
    run.write_problems("dev", dev)
    buffers = seed_buffers(train, Rules(keeps_partial=self_sampling == "fcs+pcs"))
    for step in range(10, steps + 1, 10):
        explore(run, train, buffers, step, rng if self_sampling != "none" else None)
        if step % 20 == 0:
            evaluation = evaluated(dev, rng)
            run.write_evaluation(step, evaluation)
            line = {"step": step, **evaluation.scalars(), "eval_tokens_drawn": 700}
            run.append_metrics(line, timings(step))
    if finished and tested:
        evaluated(apples(8, 77), rng).write(directory / "evaluations" / "test.json", expand=False)
    last = directory / ("final" if finished else f"checkpoint-{steps}")
    save_buffers(last, buffers)
    if not finished:
        seal(last)
    return run


def explore(
    run: Run,
    problems: list[Problem],
    buffers: dict[str, SolutionBuffer],
    step: int,
    rng: random.Random | None,
) -> None:
    """Two samples of every problem, if there is an rng, and a line of metrics."""
    verdicts: Counter[Verdict] = Counter()
    samples = []
    for problem in problems if rng else ():
        for _ in range(2):
            text = written(problem, rng)
            verdict = buffers[problem.id].consider(trace(text), step)
            samples.append(Sample(problem.id, "", text, 1, True, step=step, verdict=verdict))
            verdicts[verdict] += 1
    run.append_samples(samples)
    line: dict[str, Any] = {
        "step": step,
        "loss": 1.0,
        "num_tokens": 100 * step,
        "samples/drawn": len(samples),
    }
    if samples:
        line |= {f"samples/frac_{verdict}": verdicts[verdict] / len(samples) for verdict in Verdict}
        line["completions/mean_length"] = 20.0
    full, partial = (
        sum(len(getattr(buffer, kind)) for buffer in buffers.values()) / len(buffers)
        for kind in ("fully_correct", "partially_correct")
    )
    line |= {"buffer/fcs_per_problem": full, "buffer/pcs_per_problem": partial}
    run.append_metrics(line, timings(step))


def evaluated(problems: list[Problem], rng: random.Random) -> Evaluation:
    """Judged samples of every problem."""
    results = tuple(
        ProblemResult(problem.id, drawn(problem, PLAN.samples, rng), drawn(problem, 1, rng))
        for problem in problems
    )
    return Evaluation.of(results, PLAN)


def drawn(problem: Problem, count: int, rng: random.Random) -> tuple[Any, ...]:
    counts = Counter(written(problem, rng) for _ in range(count))
    return tuple(
        judge(problem, whole(problem.id, text, times), trace(text)) for text, times in counts.items()
    )


def timings(step: int) -> dict[str, float]:
    return {"step": step, "seconds": 12.0, **{f"time/{span}": 2.0 for span in SPANS}}


def save_buffers(directory: Path, buffers: dict[str, SolutionBuffer]) -> None:
    directory.mkdir(parents=True)
    with (directory / "buffer.jsonl").open("w", encoding="utf-8") as stream:
        write_buffers(stream, buffers.values())
