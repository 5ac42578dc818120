"""Offline rounds: sample all problems, keep what is right, train on it from the first weights, repeat.

RFT is one round with the references, ReST-EM several without them, STaR several with one solution each.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from partway.arms.outcomes import Spent
from partway.arms.trials import Trial, loaded, sampling
from partway.evaluation.samples import Judged
from partway.files import atomic_writer
from partway.language import Language
from partway.measuring.result_files import read_results
from partway.problem import Problem
from partway.runs import json_line


def prepared(
    trial: Trial, number: int, model: str, problems: Sequence[Problem]
) -> tuple[list[Problem], dict[str, Any]]:
    """What a round trains on, and the settings that only it has.

    All problems are sampled with `model`, once, and the solutions to train on are written down.
    """
    file = trial.round_file(number, "-solutions.jsonl")
    if not trial.round_file(number, "-spent.json").exists():  # written last: where it is, all is sampled
        _sample(trial, number, model, problems)
    results, plan = read_results(trial.round_file(number, ".json"))
    samples = {result.task_id: result.samples for result in results}
    kept = {p.id: kept_solutions(trial, p, samples[p.id], plan.language) for p in problems}
    with atomic_writer(file) as stream:
        stream.writelines(json_line({"id": key, "solutions": solutions}) for key, solutions in kept.items())
    # The budget of one arm is divided among its rounds, so that all arms take as many steps.
    steps = trial.experiment.steps // trial.arm.rounds
    evaluated = min(trial.experiment.eval_steps, steps)
    settings = {
        "buffer_file": str(file),
        "max_steps": steps,
        "eval_steps": evaluated,
        "save_steps": evaluated,
    }
    return [_with_reference(trial, problem, bool(kept[problem.id])) for problem in problems], settings


def kept_solutions(
    trial: Trial, problem: Problem, samples: Sequence[Judged], language: Language
) -> list[dict[str, Any]]:
    """The distinct right samples of a problem, the most frequent first, at most as many as the arm says."""
    right = [one.sample for one in samples if one.passed]
    traces = language.trace_all([(problem, sample.completion) for sample in right])
    distinct = list(dict.fromkeys(trace.solution.steps for trace in traces))
    most = trial.arm.most_solutions
    # A single one is the most frequent (STaR); of several a random choice (ReST-EM): the most frequent
    # ones would be alike.
    if most is not None and len(distinct) > most > 1:
        distinct = random.Random(f"{trial.seed}/{problem.id}").sample(distinct, most)
    return [{"steps": list(steps), "found": 0} for steps in distinct[:most]]  # a slice to None is all


def _with_reference(trial: Trial, problem: Problem, is_solved: bool) -> Problem:
    """The problem as the round learns it, with its reference or without."""
    if trial.arm.references == "all" or (trial.arm.references == "unsolved" and not is_solved):
        return problem
    return replace(problem, reference=None)


def _sample(trial: Trial, number: int, model: str, problems: Sequence[Problem]) -> None:
    started = time.perf_counter()
    sampler = loaded(model, trial.experiment.dtype)
    temperature = trial.arm.settings.get("temperature", 0.8)  # each method has its own
    plan = trial.plan(trial.experiment.samples_per_round(trial.arm), temperature, pass1=False)
    summary = trial.round_file(number, ".json")
    trial.draw(sampling(lambda: sampler), summary, problems, plan)
    samples = [one.sample for result in read_results(summary)[0] for one in result.samples]
    spent = Spent(
        samples=sum(sample.count for sample in samples),
        # One more each: the token that ends it was drawn, too.
        tokens_sampled=sum(s.count * (len(sampler.codec.encode(s.completion)) + 1) for s in samples),
        seconds=time.perf_counter() - started,
    )
    with atomic_writer(trial.round_file(number, "-spent.json")) as stream:
        json.dump(asdict(spent), stream)


def spent(trial: Trial) -> Spent:
    """What all rounds spent on sampling, and those before the last on training."""
    if trial.arm.method != "rounds":
        return Spent()
    total = Spent()
    for number in range(1, trial.arm.rounds + 1):
        sampling = json.loads(trial.round_file(number, "-spent.json").read_text(encoding="utf-8"))
        # The last round's training is the arm's own run, which the caller adds.
        training = Spent.of(trial.round(number)) if number < trial.arm.rounds else Spent()
        total = total + Spent(**sampling) + training
    return total
